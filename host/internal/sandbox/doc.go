// Package sandbox owns the way from a module to a running turn: digest, admit,
// meter, compile, describe, image, pool, run. It is the only importer of wazero.
// It must not know tasks, tenants or the store: what a guest may do reaches it as
// the ports of a [Turn].
//
// An [Engine] compiles every module once, without its data. The first turn within
// some limits makes the module's [image]: an instance copies its data, runs its
// start function, _initialize and skep_warm under the image's fixed clock and
// seed, and what its memory and globals hold then is kept, the same bytes in every
// process. Every turn begins as that image, by its pages mapped copy-on-write or by
// a copy, and runs skep_turn under its own clock, seed and fuel. Behind a turn that
// ended well the instance is made the image again, and the [pool] keeps it for the
// next turn of the same module within the same limits; behind any other, and where
// its memory has grown, it is closed. A module whose instances hold more than
// memory and numbers (see wasmbin.Bare) or whose image is too large does all of
// this anew for every turn.
//
// Nothing here relies on the engine's own way to stop code. The rewriter has put
// charges into the guest; when a slice is used up the guest calls tick, and tick
// looks at the clock, the context and the budgets (meter.go). A kill is a panic
// of errKilled that wazero turns into an error; what ended the turn is kept in
// run.exit. No goroutine of the package outlives the call that started it.
package sandbox
