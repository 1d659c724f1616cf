// Package cluster owns the tests of several hosts that share a server: hosts are killed and
// stopped while others go on. It must not know how hosts are built: it uses files and requests.
package cluster
