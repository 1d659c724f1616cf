// Package quarantine owns which turns are running right now, in a small file of a data
// directory, and which agents must not run any more, in the store. It must not know
// what a turn does: it sees 32 bytes that name it, and whether it computes.
//
// # The running set
//
// A host that dies leaves in it the turns that were computing at that moment.
// One of them may have been the reason, so they are suspects. A suspect that was
// computing again at the next death has a crash more; one that only waited, or had
// not had its turn yet, keeps what it has.
//
// The file is written and never synced: what a process has written survives its
// death, and after the death of the whole machine no turn is a suspect. What is
// torn or foreign in it is left out.
//
// # The quarantine
//
// An agent that is in it stays in it until an operator releases it. Hosts that share a
// store share it. Earlier versions kept it in a file of JSON, which is moved into the store.
package quarantine
