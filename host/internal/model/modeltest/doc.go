// Package modeltest owns stand-ins for providers, which speak their wire formats,
// and the suite that every model passes. It must not know how a host uses models.
package modeltest
