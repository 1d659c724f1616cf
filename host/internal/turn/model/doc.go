// Package model owns requests to language models: providers, their wire formats, retries,
// limits of an answer, prices, and recorded or scripted answers. It must not know turns,
// grants, budgets or the store.
//
// An answer is not trusted: it is bounded in bytes, calls and time, and the key is removed
// from everything a provider repeats. A call is retried only while no piece was emitted,
// so that no caller reads a beginning twice.
//
// No goroutine outlives the call that started it.
package model
