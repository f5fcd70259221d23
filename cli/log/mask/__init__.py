"""`cellgate log export --mask`: a file of the log with pseudonyms instead of names.

The masked file replays as the log does. Every field of every row is declared here: kept, masked as
names of a kind, or dropped. What is not declared is left out, so that a field that is added
elsewhere shows no name. A declaration is a function from a value to the masked value.

names           names and their pseudonyms, which keep the order of the names
fields          how fields are declared
structures      texts that code takes apart: gangs, addresses, chains, seats
documents       documents that rows refer to
reasons         the arguments of reasons, and the sentences that they make
engine_rows     inputs and decisions of the engine
queue_rows      ranks, reservations, and gates that are lifted
admission_rows  admission decisions
row_kinds       every kind of row
sentences       the sentences of rows, written anew
masker          masks rows, one after the other
replayed        what is written anew: checksums over names, and explanations
export          from the log to a masked file
key             the names behind the pseudonyms, as a file
"""
