"""The golden corpus: does this version still produce the bytes that the version before it produced?

The other tests hold Kafka, file run and replay against one another, all in one version of the code: a change that moves
all of them together stays unnoticed. Here every byte that leaves a machine is held against what is stored.

    configurations.py   the cases: what is configured, and which events come
    events.py           makes the events, by integer arithmetic alone
    schedule.py         what happens to the machines, and when they crash
    driver.py           the only module that imports the package; it returns bytes and texts
    corpus.py           everything that is stored of a case
    commands.py         the JSON of the commands
    compare.py          what differs from the stored answers, and difference.py where
    store.py            the stored answers: digests.json and others, bytes/ and cli/

`make golden` writes the answers anew, `python -m tests.golden` prints what differs.
"""
