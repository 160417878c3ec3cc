"""The books for other programs and other people: hledger and beancount files, a workbook, the accountant's package."""
