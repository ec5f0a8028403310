# SPDX-License-Identifier: MIT
"""A service's kind of work, for ever: parse, look up, compute, sort, format; some of it fails."""
import json
import re

WORD = re.compile(r"(\w+)=(\w+)")


class Account:
    def __init__(self, name):
        self.name = name
        self.entries = []

    def add(self, amount):
        if amount % 97 == 0:
            raise ValueError(f"{self.name}: {amount}")
        self.entries.append(amount)

    def total(self):
        return sum(amount * 3 // 2 for amount in self.entries)


def parse(line):
    return {key: value for key, value in WORD.findall(line)}


def handle(accounts, line):
    request = parse(line)
    account = accounts.setdefault(request["name"], Account(request["name"]))
    try:
        account.add(int(request["amount"]))
    except ValueError as error:
        return str(error)
    return json.dumps({"name": account.name, "total": account.total()})


def main():
    n = 0
    while True:
        accounts = {}
        for _ in range(500):
            n = (n * 1103515245 + 12345) & 0x7FFFFFFF
            handle(accounts, f"name=user{n % 31} amount={n % 10007} kind=x")
        sorted(accounts.values(), key=lambda account: (-account.total(), account.name))


main()
