// Package auth owns who a caller is: principals and their roles, the keys of the
// host, the tokens that it issues, and the limits on calls and on failed
// authentication. It must not know HTTP, where keys are configured, how external
// backends work, or what a caller wants to do. It starts no goroutine and is safe
// for concurrent use.
package auth
