// Package postgres owns connections to a PostgreSQL server for the store: a driver for
// [database/sql] and groups of writes that are fenced and numbered. It must not know the
// tables of the store.
//
// # Pipelines
//
// Statements of a transaction that change rows wait in the connection until one is asked for
// its answer: a query, a number of changed rows, or COMMIT. All go to the server together, so
// a group costs a round trip for each answer that it needs. The error of a statement comes
// with the answer that follows it.
//
// # Numbers
//
// A row that is added gets its number here, of a block that the table's sequence has given, so
// that rows which name it need not wait for an answer.
//
// # Groups
//
// A process that writes has a row in the table hosts. Each group of writes begins with an
// update of that row, which gives the group its number and fails where another process has
// fenced this one. When a connection breaks between COMMIT and its answer, the number tells
// whether the group is there: see [Conn.CommitGroup].
package postgres
