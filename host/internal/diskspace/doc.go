// Package diskspace owns how much a file system still takes: bytes and files, and when
// that is too little for a host. It must not know what is stored.
package diskspace
