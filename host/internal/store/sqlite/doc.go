// Package sqlite is the engine behind [swarm.Store], [auth.TokenStore] and
// [state.Store]: one file in one directory of one host, or with the same statements a schema of
// a PostgreSQL server, see [OpenServer]. It owns the directory's lock, the database with
// its schema and migrations, and the goroutine that writes it. It must not know
// what a task, a message or a turn means: bodies are opaque bytes to every
// query, and the few columns beside them exist for the port's own lookups.
//
// # Writing
//
// Accept, Commit and Journal encode on their caller's goroutine and hand the
// result to one writer, which gathers what is waiting into one transaction and
// syncs the disk once for all of it. Open starts that goroutine; Close lets it
// finish what it was handed and waits for it.
//
// What takes more than a group (erasing a tenant, sealing all it has anew) is
// noted in the file first and done in slices between other groups. Open starts
// a goroutine for what an earlier host left undone; Close cuts it short, and
// the next open takes it up again.
//
// # Bodies
//
// Whatever tenants write is in bodies: plain, compressed where that pays, or
// with a keyring sealed for the place it lies in. Names that are looked up
// (tenants, swarms, instances, tasks, agents, doors, keys, names of values,
// realms, kinds and names of the records of gateways)
// are columns and stay readable, and so is what is kept of issued tokens, which is
// no text of a tenant's agents. The keys table names the keys that bodies may
// be sealed with.
//
// # Keys
//
// Tenant, swarm, instance and task id are spelled out once, in tables instances
// and tasks. Child tables are keyed by a single integer, the number of the task
// (or of the agent in its task) and the entry's own number side by side, see
// [pack]. Measured with 1.5 KiB bodies this makes an insert three times as fast
// as a compound primary key, whose index pages cannot hold bodies of that size.
package sqlite
