// Package sandbox owns the way from a module to a running turn: digest, admit,
// meter, compile, describe, run. It is the only importer of wazero. It must not
// know tasks, tenants or the store: what a guest may do reaches it as the ports
// of a [Turn].
//
// An [Engine] compiles every module once. [Module.Turn] runs one turn in a fresh
// instance: memory and globals as the module declares them, _initialize and
// skep_warm under the image's fixed clock and seed, then skep_turn under the
// turn's own. The instance is dropped afterwards, whatever happened.
//
// Nothing here relies on the engine's own way to stop code. The rewriter has put
// charges into the guest; when a slice is used up the guest calls tick, and tick
// looks at the clock, the context and the budgets (fuel.go). A kill is a panic
// of errKilled that wazero turns into an error; what ended the turn is kept in
// run.exit. The package starts no goroutines.
package sandbox
