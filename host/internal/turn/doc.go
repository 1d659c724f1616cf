// Package turn owns the contract between the runtime and what executes an agent:
// what one turn runs on ([Turn], [Limits], [Clock], [CPU]), the operations it may
// call ([Ops], [Answer]), how it ends ([Result], [Exit]) and why code is refused
// before it runs ([LoadError]). It imports the standard library and package abi
// only: it must not know WebAssembly, processes, tasks or the store.
package turn
