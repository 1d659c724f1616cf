// Package jail owns what agents do with files: actions on the files of one
// directory, and nothing outside it. It must not know swarms, turns or how an action
// is called.
//
// Every call opens the directory anew, checks that it is the one that was there when
// the operator's file was read, and goes through [os.Root] from there, so neither
// ".." nor a symbolic link leads out, whoever changes one at that moment. A
// directory that is not shared has one of its own for each tenant, by its name.
//
// A file is written beside its place and then gets its name: readers see the old one
// or the new one, and a call that is made again leaves what it would have left.
package jail
