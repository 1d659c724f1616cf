// Package gen owns the code, the schema and the protobuf file that declarations of
// messages become: types, and how they are read from JSON, written and checked, without
// any dependency. It must not know how declarations are written, nor where files are.
//
// All languages share one design. A support text, kept in a file of its language below
// support, parses JSON strictly and has a reader and a writer for each built-in type; the
// generator adds the types and a reader and a writer for each of them, in the order of
// the declarations. All give the same reasons for the same faults.
package gen
