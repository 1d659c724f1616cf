// Package did owns decentralized identifiers as UAMP needs them: did:web and did:key, the
// documents behind them, and when one is fetched. It must not know who may be asked
// about, nor what the keys are for.
package did
