"""What is tried from inside a fence on what lies outside of it: a program on its own, without any package.

Its arguments: the approval key, a file of the workspace, a folder outside (with ``victim``, and the sockets ``heard``
and ``stream``), the name of an abstract socket, a process, a segment of shared memory, a message queue, and, where
there is one, a file outside that may be read. Each attempt is a real one, in a process of its own; none does harm where
it succeeds. What succeeded is printed, and how many were tried.
"""

import array
import ctypes
import fcntl
import mmap
import os
import resource
import signal
import socket
import stat
import struct
import sys

key, config, outside, abstract = sys.argv[1:5]
stranger, segment, queue = map(int, sys.argv[5:8])
readable = sys.argv[8] if len(sys.argv) > 8 else ""
victim, heard, stream = (f"{outside}/{name}" for name in ("victim", "heard", "stream"))
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = os.uname().machine == "x86_64"
DEVICE = os.open("/dev/null", os.O_RDWR)
HERE, EMPTY_PATH, NAMESPACE = -100, 0x1000, 0x10000000
attempts = {}


def call(x86, arm, *args):
    given = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args]
    found = libc.syscall(ctypes.c_long(x86 if X86 else arm), *given)
    if found < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return found


def read(path):
    with open(path, "rb") as file:
        must(file.read(1))


def must(is_done):
    if not is_done:
        raise OSError(1, "not done")


def changes(name, path, *ways):
    """Attempts to change what is said of a file."""

    def seen():
        about = os.stat(path)
        changed = about.st_ctime_ns if stat.S_ISREG(about.st_mode) else 0  # tells of extended attributes, too
        return about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, about.st_size, changed

    def attempt(way):
        before = seen()
        try:
            way(path)
        finally:
            must(seen() != before)

    for number, way in enumerate(ways):
        attempts[f"{name} {number}"] = lambda way=way: attempt(way)


def by_link(path):
    name = f"link{os.getpid()}"
    os.symlink(path, name)
    try:
        os.chmod(name, 0o645)
    finally:
        os.unlink(name)


def set_by_newest(path):
    value = ctypes.create_string_buffer(b"1")
    call(463, 463, HERE, path.encode(), 0, b"user.n", struct.pack("<QII", ctypes.addressof(value), 1, 0), 16)


for what, path in (("key", key), ("workspace", config), ("file outside", victim)):
    changes(
        f"mode of {what}",
        path,
        lambda p: os.chmod(p, 0o640),
        lambda p: call(452, 452, HERE, p.encode(), 0o604, 0),
        lambda p: call(452, 452, os.open(p, os.O_PATH), b"", 0o606, EMPTY_PATH),
        lambda p: os.chmod(f"/proc/self/fd/{os.open(p, os.O_PATH)}", 0o641),
        lambda p: os.chmod(f"/proc/self/root{p}", 0o642),
        lambda p: os.chmod(f"/proc/{os.getpid()}/root{p}", 0o643),
        lambda p: os.chmod("../" * 30 + p[1:], 0o646),
        lambda p: os.chmod(os.path.basename(p), 0o647, dir_fd=os.open(os.path.dirname(p), os.O_PATH)),
        lambda p: os.fchmod(os.open(p, os.O_RDONLY), 0o650),
        by_link,
    )
    changes(
        f"time of {what}",
        path,
        lambda p: os.utime(p, (1, 1)),
        lambda p: os.utime(p),
        lambda p: call(280, 88, os.open(p, os.O_PATH), b"", struct.pack("<4q", 3, 0, 3, 0), EMPTY_PATH),
        lambda p: call(132, -1, p.encode(), struct.pack("<2q", 4, 4)),
        lambda p: call(235, -1, p.encode(), struct.pack("<4q", 5, 0, 5, 0)),
        lambda p: call(261, -1, HERE, p.encode(), struct.pack("<4q", 6, 0, 6, 0)),
    )
    changes(
        f"owner of {what}",
        path,
        lambda p: os.chown(p, 1, 1),
        lambda p: os.lchown(p, 2, 2),
        lambda p: call(260, 54, os.open(p, os.O_PATH), b"", 3, 3, EMPTY_PATH),
    )
    changes(
        f"attribute of {what}",
        path,
        lambda p: os.setxattr(p, "user.a", b"1"),
        lambda p: os.setxattr(p, "user.b", b"1", follow_symlinks=False),
        lambda p: os.setxattr(p, "trusted.c", b"1"),
        set_by_newest,
        lambda p: call(469, 469, HERE, p.encode(), struct.pack("<QIIII", 0x40, 0, 0, 0, 0), 24, 0),
    )
changes(
    "size of a file outside",
    victim,
    lambda p: os.truncate(p, 1),
    lambda p: os.open(p, os.O_RDONLY | os.O_TRUNC),
    lambda p: os.write(os.open(p, os.O_WRONLY | os.O_APPEND), b"x"),
)
changes("mode of a device", "/dev/null", lambda p: os.fchmod(DEVICE, 0o622), lambda p: os.chmod(p, 0o622))
if readable:
    changes(
        "what may be read",
        readable,
        lambda p: os.fchmod(os.open(p, os.O_RDONLY), 0o600),
        lambda p: os.utime(os.open(p, os.O_RDONLY), (1, 1)),
        lambda p: os.fchown(os.open(p, os.O_RDONLY), 1, 1),
        lambda p: os.setxattr(os.open(p, os.O_RDONLY), "user.d", b"1"),
        lambda p: os.truncate(p, 1),
        lambda p: os.open(p, os.O_RDONLY | os.O_TRUNC),
    )
    attempts["lease on what may be read"] = lambda: fcntl.fcntl(
        os.open(readable, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK
    )

mine = f"{os.getpid()}"
attempts |= {
    "read the key": lambda: read(key),
    "read a file outside": lambda: read(victim),
    "list a folder outside": lambda: os.listdir(outside),
    "file outside": lambda: os.close(os.open(f"{outside}/a{mine}", os.O_CREAT | os.O_WRONLY)),
    "folder outside": lambda: os.mkdir(f"{outside}/b{mine}"),
    "link outside": lambda: os.symlink("x", f"{outside}/c{mine}"),
    "pipe outside": lambda: os.mkfifo(f"{outside}/d{mine}"),
    "link to a file outside": lambda: (os.link(victim, f"e{mine}"), os.unlink(f"e{mine}")),
    "move a file outside": lambda: (os.rename(victim, victim + "x"), os.rename(victim + "x", victim)),
    "passwords": lambda: read("/etc/shadow"),
    "settings of the kernel": lambda: os.open("/proc/sys/kernel/domainname", os.O_WRONLY),
    "another's cgroup": lambda: os.open("/sys/fs/cgroup/cgroup.procs", os.O_WRONLY),
}

# Processes.
for name in ("environ", "maps", "mem", "stack", "auxv"):
    attempts[f"its {name}"] = lambda name=name: read(f"/proc/{stranger}/{name}")
for name in ("cwd", "root", "exe", "fd/0", "ns/net"):
    attempts[f"its {name}"] = lambda name=name: os.readlink(f"/proc/{stranger}/{name}")
memory = ctypes.create_string_buffer(8)


def join_first_group():
    """That of the leader of this session: where it is what watches over this one, it is signalled with its group."""
    wanted = os.getpgid(os.getsid(0))
    must(wanted != os.getpgrp())
    os.setpgid(0, wanted)


LOCAL, REMOTE = struct.pack("<2Q", ctypes.addressof(memory), 8), struct.pack("<2Q", 0x400000, 8)
attempts |= {
    "attach to it": lambda: call(101, 117, 0x4206, stranger, 0, 0),
    "read its memory": lambda: call(310, 270, stranger, LOCAL, 1, REMOTE, 1, 0),
    "write its memory": lambda: call(311, 271, stranger, LOCAL, 1, REMOTE, 1, 0),
    "take its descriptor": lambda: call(438, 438, os.pidfd_open(stranger), 0, 0),
    "compare it": lambda: call(312, 272, os.getpid(), stranger, 0, 0, 0),
    "its namespace": lambda: call(308, 268, os.open(f"/proc/{stranger}/ns/uts", os.O_RDONLY), 0),
    "signal to it": lambda: os.kill(stranger, 0),
    "signal to its group": lambda: os.killpg(stranger, 0),
    "signal by a descriptor": lambda: signal.pidfd_send_signal(os.pidfd_open(stranger), 0),
    "signal to its thread": lambda: call(234, 131, stranger, stranger, 0),
    "signal with a value": lambda: call(129, 138, stranger, 0, struct.pack("<3i", 0, 0, -1) + bytes(116)),
    "signal by a pipe": lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, stranger),
    "its limit": lambda: resource.prlimit(stranger, resource.RLIMIT_NOFILE, (99, 99)),
    "its processors": lambda: os.sched_setaffinity(stranger, os.sched_getaffinity(stranger)),
    "its priority": lambda: os.setpriority(os.PRIO_PROCESS, stranger, 5),
    "its input and output": lambda: call(251, 30, 1, stranger, 3 << 13),
    "the first one's limit": lambda: resource.prlimit(1, resource.RLIMIT_NOFILE),
    "the first one's environment": lambda: read("/proc/1/environ"),
    "the first one's root": lambda: os.listdir("/proc/1/root"),
    "another's group": join_first_group,
}

# What processes share, the kernel's keys, namespaces and the machine.
attempts |= {
    "new shared memory": lambda: call(29, 194, 0, 4096, 0o1600),
    "shared memory": lambda: must(call(30, 196, segment, 0, 0o10000) >= 0),
    "message": lambda: call(69, 189, queue, struct.pack("<q", 1) + b"xx", 2, 0o4000),
    "semaphore": lambda: call(64, 190, 0, 1, 0o1600),
    "shared file": lambda: read(f"/dev/shm/{abstract}"),
    "keyring": lambda: call(250, 219, 0, -3, 1),
    "key of the kernel": lambda: call(248, 217, b"user", b"cleared-test", b"x", 1, -3),
    "user namespace": lambda: call(272, 97, NAMESPACE),
    "user namespace by clone": lambda: call(56, 220, NAMESPACE | 17, 0, 0, 0, 0) or os._exit(0),
    "user namespace by clone3": lambda: (
        call(435, 435, struct.pack("<11Q", NAMESPACE, *[0] * 3, 17, *[0] * 6), 88) or os._exit(0)
    ),
    "root": lambda: os.chroot("."),
    "mount": lambda: call(428, 428, HERE, b"/", 0),
    "file system": lambda: call(430, 430, b"tmpfs", 0),
    "ring": lambda: call(425, 425, 1, bytes(120)),
    "program in the kernel": lambda: call(321, 280, 0, struct.pack("<4I", 2, 4, 4, 1) + bytes(100), 116),
    "faults": lambda: call(323, 282, 1),
    "watch on files": lambda: call(300, 262, 0x200, 0),
    "file by its handle": lambda: call(304, 265, HERE, struct.pack("<Ii", 8, 1) + bytes(8), 0),
    "rights": lambda: call(
        126, 91, struct.pack("<Ii", 0x20080522, 0), struct.pack("<6I", *[0xFFFFFFFF] * 2, 0, *[0x1FF] * 2, 0)
    ),
    "another user": lambda: os.setuid(1),
    "input of a terminal": lambda: fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x"),
}


# Sockets.
def let_out(kind):
    left, _right = socket.socketpair(socket.AF_UNIX, kind)
    left.sendmsg([b"x" * 2000], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))], 0, heard)


def reconnect(kind, address):
    left, right = socket.socketpair(socket.AF_UNIX, kind)
    right.close()
    left.connect(address)


attempts |= {
    "datagram to a listener": lambda: let_out(socket.SOCK_DGRAM),
    "raw datagram": lambda: let_out(socket.SOCK_RAW),
    "socket": lambda: socket.socket(socket.AF_UNIX).connect(stream),
    "abstract socket": lambda: socket.socket(socket.AF_UNIX).connect(f"\0{abstract}"),
    "pair connected anew": lambda: reconnect(socket.SOCK_STREAM, stream),
    "packets connected anew": lambda: reconnect(socket.SOCK_SEQPACKET, heard),
}


def serve(at_port, protocol=0):
    """Whoever listens on loopback gets what browsers send there."""
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    if at_port:
        server.bind(("127.0.0.1", 0))
    server.listen()


def tell_by_watch():
    watch = call(294, 26, 0o4000)
    call(254, 27, watch, outside.encode(), 0xFFF)


def see_sockets():
    with open("/proc/net/unix") as file:
        must(abstract in file.read())


def set_option(level, option, value):
    """With some a socket waits for a call at a port, without listening: calls that meet are joined."""
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).setsockopt(level, option, value)


attempts |= {
    "multipath socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).bind(("127.0.0.1", 0)),
    "port": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).bind(("127.0.0.1", 0)),
    "port of both": lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM).bind(("::", 0)),
    "call that waits": lambda: set_option(6, 30, 1),
    "port of one's choice": lambda: set_option(0, 51, 0x1C409C40),
    "names of sockets": see_sockets,
    "server": lambda: serve(True),
    "server at any port": lambda: serve(False),
    "server of many paths": lambda: serve(False, 262),
    "watch on a folder outside": tell_by_watch,
    "attribute outside": lambda: must(os.getxattr(victim, "user.known")),
    "attributes outside": lambda: must(os.listxattr(victim)),
    "disks of the machine": lambda: call(306, 267, os.open(".", os.O_RDONLY)),
}
OTHERS = {
    "packet": (17, 3, 768),
    "vsock": (40, 1, 0),
    "audit": (16, 3, 9),
    "devices": (16, 3, 15),
    "raw": (2, 3, 1),
    "ciphers": (38, 5, 0),
    "keys": (15, 3, 2),
}
for name, (family, kind, protocol) in OTHERS.items():
    attempts[f"socket: {name}"] = lambda family=family, kind=kind, protocol=protocol: socket.socket(
        family, kind, protocol
    )

# Devices, files that others run, and other numbers of calls.
for name in ("mem", "port", "kmsg", "vda", "sda", "fuse", "kvm", "net/tun", "tty0", "tty1", "console", "loop-control"):
    attempts[f"device {name}"] = lambda name=name: os.open(f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK)


def make_device(kind, number):
    name = f"device{os.getpid()}"
    os.mknod(name, kind | 0o600, number)
    try:
        os.open(name, os.O_RDONLY)
    finally:
        os.unlink(name)


def set_id(make):
    name = f"set{os.getpid()}"
    make(name)
    try:
        must(os.stat(name).st_mode & 0o6000)
    finally:
        os.unlink(name)


def call_as_i386():
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # getpid
    must(ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))() == os.getpid())


attempts |= {
    "own device": lambda: make_device(stat.S_IFCHR, os.makedev(1, 1)),
    "own disk": lambda: make_device(stat.S_IFBLK, os.makedev(254, 0)),
    "set-id file": lambda: set_id(lambda name: os.open(name, os.O_CREAT | os.O_WRONLY, 0o4755)),
    "set-id node": lambda: set_id(lambda name: os.mknod(name, 0o104755)),
    "set-id mode": lambda: set_id(lambda name: (open(name, "w").close(), os.chmod(name, 0o4755))),
    "set-id mode, newer": lambda: set_id(
        lambda name: (open(name, "w").close(), call(452, 452, HERE, name.encode(), 0o2755, 0))
    ),
}
if X86:
    attempts |= {"calls of i386": call_as_i386, "calls of x32": lambda: call(0x40000000 | 39, 0)}

tried = 0
for name, attempt in attempts.items():
    said, says = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            attempt()
            os.write(says, b"x")
        finally:
            os._exit(0)
    os.close(says)
    if os.read(said, 1):
        print("POSSIBLE", name)
    os.close(said)
    os.waitpid(child, 0)
    tried += 1
print("tried", tried)
sys.stdout.flush()
sys.exit(3)
