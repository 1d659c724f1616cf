// Package fileaction owns actions on the files of one directory, and nothing outside it.
// It must not know swarms, turns or how an action is called.
//
// Each call opens the directory again, checks that it is the one that was there when the
// operator's file was read, and uses [os.Root] from there. So neither ".." nor a symbolic
// link leads out, even one that changes during the call. Unless the directory is shared,
// each tenant has a subdirectory of its name.
//
// A file is written under a temporary name and then renamed: readers see the old file or
// the new one, and a repeated call has the same effect as one call.
package fileaction
