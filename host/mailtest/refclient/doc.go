// Package refclient owns a second, independent client of a MAIL server, for
// tests: what it sends is, byte for byte, what the reference's client sends
// (contract 9.3), and it takes no more than that one takes. It must not know
// package client, net/http's client, or anything of the host. It starts no
// goroutine and writes to one connection a call.
package refclient
