// Package model owns how models are asked: providers, their wire formats,
// retries, limits of an answer, prices, and recorded or scripted answers. It must
// not know turns, grants, budgets or the store.
//
// An answer is not trusted: it is bounded in bytes, calls and time, and the key
// is taken out of whatever a provider repeats. A call is tried again only while
// none of its pieces was handed on, so that nobody reads a beginning twice.
//
// Nothing here starts a goroutine that outlives the call that it is for.
package model
