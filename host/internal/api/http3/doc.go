// Package http3 owns HTTP/3 on a UDP socket: whose address is real, how many connections and
// requests there may be, and which requests came on one connection. It must not know what is
// served.
package http3
