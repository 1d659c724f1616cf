package config

import "time"

// Limits is the [limits] table. Zero means unlimited, except in HTTP and Module.
type Limits struct {
	TaskMessages int           // turns of one task
	TaskTimeout  time.Duration // of one task, down time included
	Instances    int           // MAIL instances
	PeerTasks    int           // that run for one other swarm's key
	Queue        int           // waiting rows of one instance
	History      int           // entries of one agent in one task
	Turns        int           // turns that run at the same time
	TaskTokens   int64         // of models, in one task
	TaskUSD      float64       // for models, in one task
	ProcessIdle  time.Duration // that a subprocess has no turn before it is ended
	HTTP         HTTPLimits
	Module       ModuleLimits
}

// HTTPLimits bounds one request of an agent. None can be switched off.
type HTTPLimits struct {
	Timeout  time.Duration // from the name's look-up to the last byte, redirects included
	Request  Size          // body that is sent
	Response Size          // body that is received, decoded
}

// ModuleLimits caps the structure of a module before anything is allocated for
// it. None can be switched off: a few hundred bytes can declare billions.
type ModuleLimits struct {
	Size            Size
	Functions       int
	Body            Size
	Locals          int // of one function
	Nesting         int
	BrTable         int
	Types           int
	Imports         int
	Exports         int
	Globals         int
	DataSegments    int
	ElementSegments int
	Tables          int
	TableElements   int // of all tables together
	CompileWork     int // estimated nanoseconds of compiling, for each byte of code
}

func (d *decoder) limits(t *table) Limits {
	off := bounds{min: 1, max: 1e9, off: true}
	l := Limits{
		TaskMessages: t.count("task_messages", 100, off),
		TaskTimeout:  t.duration("task_timeout", time.Hour, bounds{int64(time.Second), int64(10 * 365 * 24 * time.Hour), true}),
		Instances:    t.count("instances", 10_000, off),
		PeerTasks:    t.count("peer_tasks", 1000, off),
		Queue:        t.count("queue", 10_000, off),
		History:      t.count("history", 0, off),
		Turns:        t.count("turns", 64, bounds{min: 1, max: 1_000_000, off: true}),
		TaskTokens:   t.number("task_tokens", counts, 0, bounds{min: 1, max: 1e15, off: true}),
		TaskUSD:      t.money("task_usd"),
		ProcessIdle:  t.duration("process_idle", 10*time.Minute, bounds{int64(time.Second), int64(365 * 24 * time.Hour), true}),
		HTTP:         httpLimits(t.table("http")),
		Module:       d.moduleLimits(t.table("module")),
	}
	t.needs("history", "history")
	t.done()
	return l
}

// httpLimits are within what one op may ask and be told: 2 MiB and 16 MiB of JSON.
func httpLimits(t *table) HTTPLimits {
	l := HTTPLimits{
		Timeout:  t.duration("timeout", time.Minute, within(100*time.Millisecond, time.Hour)),
		Request:  t.size("request", 2*MiB, bounds{min: 1, max: int64(2 * MiB)}),
		Response: t.size("response", 8*MiB, bounds{min: 1, max: int64(16 * MiB)}),
	}
	t.done()
	return l
}

func (d *decoder) moduleLimits(t *table) ModuleLimits {
	to := func(most int64) bounds { return bounds{min: 1, max: most} }
	l := ModuleLimits{
		Size:            t.size("size", 16*MiB, bounds{min: 8, max: int64(GiB)}),
		Functions:       t.count("functions", 50_000, to(1_000_000)),
		Body:            t.size("body", 64*KiB, to(int64(8*MiB))),
		Locals:          t.count("locals", 256, to(50_000)),
		Nesting:         t.count("nesting", 1024, to(10_000)),
		BrTable:         t.count("br_table", 10_000, to(1_000_000)),
		Types:           t.count("types", 10_000, to(1_000_000)),
		Imports:         t.count("imports", 64, to(100_000)),
		Exports:         t.count("exports", 1024, to(100_000)),
		Globals:         t.count("globals", 10_000, to(1_000_000)),
		DataSegments:    t.count("data_segments", 200_000, to(2_000_000)),
		ElementSegments: t.count("element_segments", 10_000, to(100_000)),
		Tables:          t.count("tables", 4, to(100)),
		TableElements:   t.count("table_elements", 100_000, to(10_000_000)),
		CompileWork:     t.count("compile_work", 1000, to(1_000_000_000)),
	}
	t.done()
	return l
}
