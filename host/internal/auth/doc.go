// Package auth owns who a caller is: principals and their roles, the keys of the
// host, the tokens that it issues, and the rates at which somebody may call and
// be wrong. It must not know HTTP, where keys are configured, how authorities
// outside the host are asked, or what a caller wants to do. It starts no
// goroutine; all of it may be used by many goroutines at once.
package auth
