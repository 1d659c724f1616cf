// Package mailtest owns the tests that see a host as its users do: over HTTP,
// with Wasm agents and a store on disk. It must not know how the host does what
// it does; everything it asserts is in an answer, an event or a history.
//
// Every agent is bundled:script, so a test scripts its agents in the
// messages it posts. The doc comment of a test names the statements of
// spec/CONFORMANCE.md that it tests.
package mailtest
