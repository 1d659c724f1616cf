// Package schema owns the compiled published shapes of MAIL: it judges a message,
// a wrapper or a tool's arguments by the schemas in spec/schema. It must not know
// runtime or transport. It is the only importer of gojsonschema, which it uses in
// the one way that is safe: schemas are linted before they are compiled, nothing
// is ever fetched, and documents are decoded here, because the library would take
// duplicate keys, trailing bytes and numbers that cost it minutes.
//
// Package mail judges messages faster and by the same rules; a fuzz target here
// holds the two together. Use mail on the way of a message, schema for tool
// arguments and as the second opinion in tests.
package schema
