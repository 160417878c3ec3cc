"""Numbers of system calls, those that a worker may make, and those that a job may not. ``seccomp`` makes the filters.

Source: the kernel's ``syscall_64.tbl`` and ``asm-generic/unistd.h``. Numbers for x86-64 and aarch64; -1: none.
"""

from __future__ import annotations

from typing import Final

NUMBERS: Final[dict[str, tuple[int, int]]] = {
    "read": (0, 63), "write": (1, 64), "open": (2, -1), "close": (3, 57), "fstat": (5, 80), "poll": (7, -1),
    "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "ioctl": (16, 29),
    "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66), "sched_yield": (24, 124), "mremap": (25, 216),
    "madvise": (28, 233), "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "dup": (32, 23),
    "dup2": (33, -1), "nanosleep": (35, 101), "getpid": (39, 172), "socket": (41, 198), "clone": (56, 220),
    "execve": (59, 221), "exit": (60, 93), "wait4": (61, 260), "kill": (62, 129), "uname": (63, 160),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "shmdt": (67, 197), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "fcntl": (72, 25), "getcwd": (79, 17),
    "gettimeofday": (96, 169), "getrlimit": (97, 163), "ptrace": (101, 117), "syslog": (103, 116),
    "rt_sigqueueinfo": (129, 138), "sigaltstack": (131, 132), "setpriority": (141, 140),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "vhangup": (153, 58), "pivot_root": (155, 41),
    "prctl": (157, 167), "arch_prctl": (158, -1), "adjtimex": (159, 171), "chroot": (161, 51), "acct": (163, 89),
    "settimeofday": (164, 170), "mount": (165, 40), "umount2": (166, 39), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "sethostname": (170, 161), "setdomainname": (171, 162),
    "iopl": (172, -1), "ioperm": (173, -1), "init_module": (175, 105), "delete_module": (176, 106),
    "quotactl": (179, 60), "gettid": (186, 178), "tkill": (200, 130), "futex": (202, 98),
    "sched_setaffinity": (203, 122), "sched_getaffinity": (204, 123), "getdents64": (217, 61),
    "set_tid_address": (218, 96), "restart_syscall": (219, 128), "semtimedop": (220, 192),
    "clock_settime": (227, 112), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "exit_group": (231, 94), "epoll_ctl": (233, 21), "tgkill": (234, 131),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184), "mq_getsetattr": (245, 185), "kexec_load": (246, 104), "waitid": (247, 95),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "ioprio_set": (251, 30),
    "migrate_pages": (256, 238), "openat": (257, 56), "newfstatat": (262, 79), "ppoll": (271, 73),
    "unshare": (272, 97), "set_robust_list": (273, 99), "move_pages": (279, 239), "epoll_create1": (291, 20),
    "eventfd2": (290, 19), "dup3": (292, 24), "pipe2": (293, 59), "rt_tgsigqueueinfo": (297, 240),
    "perf_event_open": (298, 241), "fanotify_init": (300, 262), "prlimit64": (302, 261),
    "open_by_handle_at": (304, 265), "clock_adjtime": (305, 266), "setns": (308, 268),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "finit_module": (313, 273),
    "sched_setattr": (314, 274), "getrandom": (318, 278), "kexec_file_load": (320, 294), "bpf": (321, 280),
    "userfaultfd": (323, 282), "membarrier": (324, 283), "statx": (332, 291), "rseq": (334, 293),
    "pidfd_send_signal": (424, 424), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "pidfd_open": (434, 434),
    "clone3": (435, 435), "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443), "process_mrelease": (448, 448), "open_tree_attr": (467, 467),
    "chmod": (90, -1), "fchmod": (91, 52), "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "fchownat": (260, 54), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
}  # fmt: skip

WORKER_MAY: Final = (
    # Its own memory, its open pipes, its threads, its end, the clock.
    "read", "write", "futex", "poll", "ppoll", "madvise", "munmap", "brk", "mremap", "readv", "writev", "close",
    "fstat", "newfstatat", "statx", "lseek", "pread64", "getdents64", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "sigaltstack", "restart_syscall", "dup", "dup2", "dup3", "fcntl", "pipe2", "sched_yield",
    "sched_getaffinity", "membarrier", "getrandom", "gettid", "getpid", "set_tid_address", "set_robust_list", "rseq",
    "arch_prctl", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "getrlimit", "uname",
    "getcwd", "exit", "exit_group",
    # For the host's thread, which starts the worker under the same filter; Landlock restricts what it can execute.
    "epoll_create1", "epoll_ctl", "eventfd2", "pidfd_open", "wait4", "waitid", "execve",
)  # fmt: skip
"""``seccomp`` allows some others by their arguments, and nothing else."""

JOB_MAY_NOT: Final = (
    # The network; sockets of files too: what listens there (tmux, docker) is not held by anything.
    "socket",
    # Into other processes.
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
    "migrate_pages", "move_pages",
    # What processes share outside of files, where Landlock has no rule.
    "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv",
    "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "add_key",
    "request_key", "keyctl",
    # The machine: mounts, clocks, names, modules, power.
    "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "syslog", "vhangup",
    "clock_settime", "clock_adjtime", "settimeofday", "adjtimex", "sethostname", "setdomainname", "reboot",
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "iopl", "ioperm",
    # Namespaces (``clone`` by its flags), and ways around path rules and filters.
    "unshare", "setns", "open_by_handle_at", "fanotify_init", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup",
    "io_uring_enter", "io_uring_register",
)  # fmt: skip
"""``seccomp`` refuses some others by their arguments, and allows all else."""
CHANGING_ATTRIBUTES: Final = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr",
    "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr",
)  # fmt: skip
"""Changing who may do what with a file, for which Landlock has no rule."""
NEWEST_FOR_JOBS: Final = 470
"""Calls from this number on are unknown here, and refused as not existing."""
