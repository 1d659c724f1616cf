// Package wasm owns the way from a module to a running turn: digest, admit,
// meter, compile, describe, image, pool, run. It is the only importer of wazero.
// It must not know tasks, tenants or the store: the operations of a guest come as the
// interfaces of a [turn.Turn].
//
// An [Engine] compiles every module once, without its data. A cache in a directory has the code, and
// what was admitted and metered, for the next start of the same program. The first turn within
// some limits makes the module's [image]: an instance copies its data, runs its
// start function, _initialize and skep_warm under the image's fixed clock and
// seed, and the content of its memory and globals is kept: the same bytes in every
// process. Every turn begins as that image, by its pages mapped copy-on-write or by
// a copy, and runs skep_turn under its own clock, seed and fuel. After a turn that
// ended well the instance is reset to the image, and its [instancePool] keeps it for
// the next turn of the same module within the same limits; after any other, and
// where its memory has grown, it is closed. A module whose instances hold more than
// memory and numbers (see binary.Detached) or whose image is too large is started
// again for every turn.
//
// No code here relies on wazero to stop a guest. The rewriter has put charges into
// the guest; when a slice is used up the guest calls tick, and tick checks the
// clock, the context and the budgets (meter.go). A kill is a panic
// of errKilled that wazero turns into an error; what ended the turn is kept in
// run.exit. No goroutine of the package outlives the call that started it.
package wasm
