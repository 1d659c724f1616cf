// Package keyring owns the keys that seal what a store keeps, and the file they
// lie in. It must not know what is sealed: it turns bytes into sealed bytes for
// a tenant, and back.
//
// # Keys
//
// Every tenant has keys of its own, made when it first writes. One of them seals;
// the others are retired, and only open what they sealed before. A key that is
// destroyed leaves its number and its tenant behind, so that what it sealed is
// told apart from what is damaged. Key numbers are random: two keyrings share
// none.
//
// # Sealing
//
// A key itself seals nothing. Each open ring derives a key from it with a random
// salt, and counts with that one: no nonce repeats, also not in a database that
// was restored from a backup or a machine that was cloned.
//
// # The file
//
// It is a header and lines of JSON with checksums, for its owner's eyes only. A
// new key is a line that is added, so that it costs the same however many there
// are, and it is on the disk before it seals anything; keys that are wanted at
// once share a line. Everything else replaces the file as a whole and wipes what
// it held before: of a destroyed key nothing but its number is left.
//
// A last line that is not whole was cut short by a crash. No caller was told that it
// is there, so it is set aside. Anything else that is not whole is damage, and
// refused: lines are added one after the other, each durable before the next.
//
// With a wrapping key the keys in the file are sealed themselves, without one
// they are readable with the file. Only one ring may have a file
// open; the caller sees to that. Others may read it beside that ring.
//
// # The table
//
// A [Table] in a database keeps the same text, a row for each line. Its keys are always
// wrapped: the server and its backups have them.
package keyring
