// Package dsl owns the language in which messages of agents are declared: its grammar,
// what a file of it means, and its one form. It must not know any language that code is
// generated in, nor messages.
//
//	file   = { item } .
//	item   = { note } ( "type" Name "=" texpr
//	       | "enum" Name "{" [ Name { "," Name } [ "," ] ] "}"
//	       | "semantics" Name "expects" ( Name | "nothing" ) [ "{" Name { "," Name } "}" ]
//	       | "import" String ) .
//	texpr  = ( Name [ "<" texpr { "," texpr } ">" ] | record ) [ "?" ] .
//	record = "{" [ field { "," field } [ "," ] ] "}" .
//	field  = { note } Name ":" texpr .
//	note   = "@" Name [ "(" [ arg { "," arg } ] ")" ] .
//	arg    = [ Name "=" ] ( String | Number | Name ) .
//
// A comment begins with // and ends with its line. The words type, enum, semantics and
// import mean something only where an item begins, so fields may have these names.
package dsl
