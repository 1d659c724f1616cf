// Package auth owns who a caller is: principals, their roles, the keys they
// show and the rates at which they may call. It must not know HTTP, where keys
// are configured, or what a caller wants to do. It starts no goroutine; all of
// it may be used by many goroutines at once.
package auth
