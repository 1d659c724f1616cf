package isolation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
)

// Options of [Run]. Plugins is required.
type Options struct {
	// Plugins holds the bundled modules.
	Plugins string
	// Bundled has the modules that Plugins lacks; it may be nil.
	Bundled config.Bundle
	// CacheDir and Compiler are as in [host.Options].
	CacheDir string
	Compiler []string
	// Progress, if set, is told what is about to be tried.
	Progress func(name string)
}

// try is one attempt; an error means that it succeeded.
type try struct {
	name, about string
	run         func(ctx context.Context, x *trial) error
}

// trial is the private host and those who call it.
type trial struct {
	url  string
	keys keys
	// marker is what only the victim knows.
	marker string
	log    *logbook

	// victim and hostile have the same id in different tenants; boss is an admin
	// of the hostile tenant.
	victim, hostile, boss *client.Client
	heard                 *heard
	// timer is the id of the timer that the victim's waiting task has set.
	timer string
}

// patience is how long the whole self-test may take.
const patience = 5 * time.Minute

// Run makes all attempts. Its error means that it could not, which proves nothing.
func Run(ctx context.Context, opt Options) (Report, error) {
	return run(ctx, opt, func(*trial) {})
}

// run lets arrange change who shows which key, once the host has its own.
func run(ctx context.Context, opt Options, arrange func(*trial)) (report Report, err error) {
	dir, err := os.MkdirTemp("", "skep-isolation-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	x := &trial{keys: newKeys(), marker: secret(), log: &logbook{}, heard: &heard{}}
	cfg, err := config.Parse("isolation.toml", []byte(swarmFile(x.keys)), dir, config.Options{BundleDir: opt.Plugins, Bundled: opt.Bundled})
	if err != nil {
		return report, err
	}
	h, err := host.New(ctx, host.Options{
		Config: cfg, DataDir: dir, CacheDir: opt.CacheDir, Listen: "127.0.0.1:0", AdminListen: "off",
		Logger: slog.New(slog.NewJSONHandler(x.log, nil)), Version: "isolation", Compiler: opt.Compiler,
	})
	if err != nil {
		return report, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- h.Run(serving) }()
	x.url = "http://" + h.Addr()
	arrange(x)
	report, err = x.run(ctx, opt)
	stop()
	return report, errors.Join(err, <-done)
}

func (x *trial) run(ctx context.Context, opt Options) (r Report, err error) {
	for who, key := range map[**client.Client]string{&x.victim: x.keys.victim, &x.hostile: x.keys.hostile, &x.boss: x.keys.boss} {
		o := client.Options{URL: x.url, Token: key, Patience: -1}
		if who != &x.victim {
			o.HTTP = x.heard.client()
		}
		if *who, err = client.New(o); err != nil {
			return r, err
		}
		defer (*who).Close()
	}
	defer x.heard.close()
	if err := x.prepare(ctx); err != nil {
		return r, fmt.Errorf("the tenant that is to be attacked cannot work: %w", err)
	}
	for _, t := range tries() {
		if opt.Progress != nil {
			opt.Progress(t.name)
		}
		err := t.run(ctx, x)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		r.add(t, err)
	}
	return r, nil
}

func tries() []try {
	var all []try
	for _, some := range [][]try{doorTries(), opTries(), loadTries(), endTries()} {
		all = append(all, some...)
	}
	return all
}

// Tasks of the victim: one that has ended, and one that waits for its timer.
const (
	endedTask   = "shared-task"
	waitingTask = "waiting-task"
	sharedKey   = "shared-idempotency-key"
	kvName      = "secret"
)

// prepare lets the victim keep its marker wherever a tenant can keep anything.
func (x *trial) prepare(ctx context.Context) error {
	put := func(scope string) call { return call{"kv.put", obj{"key": kvName, "value": x.marker, "scope": scope}} }
	texts, err := play(ctx, x.victim, client.Post{Task: endedTask, Key: sharedKey}, put("task"), put("agent"), put("instance"),
		call{"blob.put", obj{"data": []byte(x.marker)}}, call{"metric", obj{"name": "marked", "value": 1}},
		call{"log", obj{"message": x.marker}}, call{"emit", obj{"note": x.marker}})
	if err != nil {
		return err
	}
	for _, text := range texts {
		if failed(text) {
			return errors.New(text)
		}
	}
	if err := wait(ctx, x.victim, waitingTask, x.marker); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		record, err := x.victim.Record(ctx, waitingTask)
		x.timer = timerOf(record)
		return x.timer != "", err
	})
}
