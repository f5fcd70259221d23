"""Search for a better Queues document: which documents are tried, and which one is better.

Pure: the caller plays the arrivals under each document and notes the figures; the search says what
to play next, and in the end what holds on days that it never trained on. All that looks random
comes from a seed that the caller gives.

The one idea: documents are compared in pairs, on the same arrivals. Many candidates play few weeks;
the better half plays more weeks, until three are left. Only these play the judging days.

bootstrap    How far a figure could be from what was measured, by blocks of days
candidates   The documents that are tried: the current one, pure strategies, samples
chances      Numbers that look random, from a seed
criteria     Objectives and constraints: which of two documents is better
document     A policy's Queues document as a tree, changed and written
effects      Which factors tell the gangs of a history apart
figures      What is remembered of a played stretch, by day
frontier     Candidates that no other one beats in everything
parameters   What is searched: fields of the document and their ranges
screening    Successive halving: which candidates play which weeks next
stretches    Days to train on, in weeks, and days to judge on
training     How the documents fared on the training weeks: the frontier
verdict      Whether a candidate is better on the judging days, beyond noise
"""
