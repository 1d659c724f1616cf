// Package modeltest owns fake providers that speak the wire formats, and the suite that
// every model passes. It must not know how a host uses models.
package modeltest
