# What pages of docs/ begin with (`<!-- start: NAME -->`): each function leaves Ana's terminal in the folder of her books.

HEAD='Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #'

# A workspace in which nothing was done yet.
books() {
    cleared init books --name "Acme LLC" && cd books || return
}

# A workspace with a bank file that waits: two lines that nobody knows, and one that the starter does.
books_with_a_bank_file() {
    books && printf '%s\n' "$HEAD" \
        'DEBIT,01/31/2025,"GITHUB *PRO SUBSCRIPTION",-4.00,ACH_DEBIT,957.03,,' \
        'DEBIT,01/03/2025,"STAPLES 00112233",-38.97,DEBIT_CARD,961.03,,' \
        'DEBIT,01/02/2025,"BLUE BOTTLE COFFEE #113",-6.75,DEBIT_CARD,1000.00,,' > import/january.csv
}

# The same, imported.
books_of_january() {
    books_with_a_bank_file && cleared agent run ingest
}

# The same, with a second agent that is live.
books_with_an_agent() {
    books_of_january && cleared agent new morning --template digest && cleared agent propose morning &&
        cleared agent approve P1
}

# A bank file of one line for the end of a page's story: DAY (MM/DD/YYYY), TEXT, AMOUNT, BALANCE.
bank_file() {
    printf '%s\nDEBIT,%s,"%s",%s,DEBIT_CARD,%s,,\n' "$HEAD" "$1" "$2" "$3" "$4"
}
