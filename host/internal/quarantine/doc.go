// Package quarantine owns two small files of a data directory: which turns are
// running right now, and which agents must not run any more. It must not know
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
// It is JSON, replaced as a whole, and synced: an agent that is in it stays in it
// until an operator releases it.
package quarantine
