package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/diagnosis"
)

const doctorHelp = `Doctor looks for what is wrong with a host: its swarm.toml and modules, who may change or
read its files, the clock, the disk, open files, addresses, what confines programs, the
database or the PostgreSQL server of [store], keyring, logs and certificates. It changes
nothing, and a host may run. With --online it also calls peers, models, MCP servers and
the webhook, and compares pinned tools.

Each finding has an id, how grave it is, and what mends it; docs/doctor.md has a section
for each id. The exit code is 8 when there is a finding that is an error, and 0 when there
are warnings alone.

The commands below test single promises of the host.`

const doctorExample = `  skep doctor
  skep doctor --online
  skep doctor -o json | jq -r '.findings[] | select(.severity == "error") | .id'`

// hostDoctor gathers findings about the host of a file.
type hostDoctor struct {
	app       *app
	plainHTTP bool
	found     []diagnosis.Finding
}

func (d *hostDoctor) add(id string, severity diagnosis.Severity, subject, message, fix string) {
	d.found = append(d.found, diagnosis.Finding{ID: id, Severity: severity, Subject: subject, Message: message, Fix: fix})
}

// doctorHostCommand adds to the command that groups the others what it does alone.
func (a *app) doctorHostCommand(cmd *cobra.Command) *cobra.Command {
	below := cmd.RunE
	var online, plainHTTP bool
	cmd.Flags().BoolVar(&online, "online", false, "also call peers, models, MCP servers and the webhook")
	plainHTTPFlag(cmd, &plainHTTP)
	cmd.FParseErrWhitelist = cobra.FParseErrWhitelist{}
	here := a.commandOnDir(func(cmd *cobra.Command, _ []string) error {
		d := &hostDoctor{app: a, plainHTTP: plainHTTP}
		if err := d.diagnose(cmd.Context(), online); err != nil {
			return err
		}
		return a.printFindings(d.found)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return below(cmd, args)
		}
		return here(cmd, args)
	}
	return cmd
}

// diagnose looks at everything. A file that cannot be read leaves nothing else to look at, one that lacks
// variables leaves what does not need them.
func (d *hostDoctor) diagnose(ctx context.Context, online bool) error {
	cfg, err := d.app.readConfig(d.plainHTTP, time.Time{})
	if err != nil {
		cfg = d.readWithStandIns(err)
		d.addFileFault(err, cfg != nil)
		if cfg == nil {
			return nil
		}
		online = false // others would refuse a stand-in
	}
	for _, w := range warningsOf(cfg) {
		d.add(diagnosis.FileWarning, diagnosis.Warning, w.Path, w.String(), "change the line, if it is not meant")
	}
	data, err := filepath.Abs(d.app.dataDir())
	if err != nil {
		return err
	}
	running := d.app.isServed(ctx, cfg)
	d.found = append(d.found, diagnosis.Diagnose(ctx, diagnosis.Options{
		Config: cfg, DataDir: data, CacheDir: d.app.env.Cache, Running: running, Machine: d.app.machine(),
	})...)
	if running {
		d.checkModelsOfHost(ctx, cfg)
		d.checkLoadOfHost(ctx, cfg)
	}
	if err := d.checkModules(ctx, cfg); err != nil {
		d.add(diagnosis.CacheUnusable, diagnosis.Error, "modules", "they cannot be compiled: "+err.Error(), "look at what else is found; name another directory in XDG_CACHE_HOME, or in TMPDIR where there is no cache")
	}
	if online {
		return d.callOthers(ctx, cfg)
	}
	return nil
}

// readWithStandIns reads a file that has no fault but variables that are not set, with a text in the
// place of each. It returns nil where that is not enough, as for a DSN.
func (d *hostDoctor) readWithStandIns(fault error) *config.Config {
	var faults config.Faults
	if !errors.As(fault, &faults) || slices.ContainsFunc(faults, func(f config.Fault) bool { return !f.LacksVariable }) {
		return nil
	}
	cfg, err := d.app.readConfigWith(func(name string) (string, bool) {
		if text, ok := d.app.env.LookupEnv(name); ok {
			return text, true
		}
		return "stand-in-for-the-variable-" + name, true // keys differ, and have a least length
	}, d.plainHTTP, time.Time{})
	if err != nil {
		return nil
	}
	return cfg
}

// machine is the machine that the program runs on, or a test's.
func (a *app) machine() diagnosis.Machine {
	if a.env.Machine != nil {
		return *a.env.Machine
	}
	return diagnosis.ThisMachine()
}

// addFileFault reports a file that cannot be read, or not without stand-ins for its variables.
func (d *hostDoctor) addFileFault(err error, standsIn bool) {
	var faults config.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			fix := "change line " + positionText(f)
			if f.LacksVariable {
				unseen := "nothing else of the host was looked at"
				if standsIn {
					unseen = "what needs it was not looked at"
				}
				fix = "run skep doctor with the variables of the host, such as those of its unit's EnvironmentFile: this shell lacks one, and " + unseen + "; if the host lacks it, too, set it there, or " + fix
			}
			d.addFault(diagnosis.FileInvalid, f, fix)
		}
		return
	}
	f := explain(err)
	id := diagnosis.FileInvalid
	if f.code == exitNotFound {
		id = diagnosis.FileMissing
	}
	d.add(id, diagnosis.Error, d.app.common.config, f.Error(), cmp.Or(f.hint, "name the file of the swarm with -c FILE"))
}

// isServed reports whether a host of this swarm answers where the file lets it listen.
func (a *app) isServed(ctx context.Context, cfg *config.Config) bool {
	address, err := a.hostURL()
	if err != nil {
		return false
	}
	c, err := a.client(address, "")
	if err != nil {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	root, err := c.Root(ctx)
	var unknown *tls.CertificateVerificationError // of an authority that only the callers know
	return errors.As(err, &unknown) || err == nil && root.Swarm.Name == cfg.Swarm.Name
}

// answerTime is how long the host, a peer or a model has to answer.
const answerTime = 5 * time.Second

// checkModules loads the modules, as validate does.
func (d *hostDoctor) checkModules(ctx context.Context, cfg *config.Config) error {
	kept := d.keptModules()
	beyond := definition.Faults(cfg, d.app.dataDir(), kept)
	found, err := d.app.checkModules(ctx, cfg, kept)
	if err != nil {
		return err
	}
	for _, f := range slices.Concat(found.grants, found.refused) {
		switch {
		case f.Path == "": // the data directory, which is looked at already
		case slices.Contains(beyond, f): // no module need be loaded to see it
			d.addFault(diagnosis.FileInvalid, f, "change line "+positionText(f))
		default:
			d.addFault(diagnosis.ModuleRefused, f, "change line "+positionText(f)+", or the module")
		}
	}
	return nil
}

func (d *hostDoctor) addFault(id string, f config.Fault, fix string) {
	d.add(id, diagnosis.Error, f.Path, f.String(), fix)
}

// keptModules is the directory of compiled modules, empty where there is none or something
// is wrong with it: a look makes no directory.
func (d *hostDoctor) keptModules() string {
	if info, err := os.Stat(d.app.env.Cache); err != nil || !info.IsDir() {
		return ""
	}
	if slices.ContainsFunc(d.found, func(f diagnosis.Finding) bool { return strings.HasPrefix(f.ID, "cache-") }) {
		return ""
	}
	return d.app.env.Cache
}

// printFindings has a line for each finding, and below it what mends it.
func (a *app) printFindings(found []diagnosis.Finding) error {
	errs := 0
	for _, f := range found {
		if f.Severity == diagnosis.Error {
			errs++
		}
	}
	if err := a.writeFindings(found, errs); err != nil || errs == 0 {
		return err
	}
	return reported(exitNonconforming)
}

func (a *app) writeFindings(found []diagnosis.Finding, errs int) error {
	if a.json() {
		return a.printJSON(map[string]any{"findings": append([]diagnosis.Finding{}, found...), "errors": errs, "warnings": len(found) - errs})
	}
	if len(found) == 0 {
		return a.printf("nothing is wrong\n")
	}
	st := a.dataStyle()
	for _, f := range found {
		word := st.red(pad(string(f.Severity), len(diagnosis.Warning)))
		if f.Severity == diagnosis.Warning {
			word = st.yellow(string(f.Severity))
		}
		text := inLine(f.Message)
		if f.Subject != "" && !strings.Contains(f.Message, f.Subject) {
			text = inLine(f.Subject) + ": " + text
		}
		if err := a.printf("%s  %s  %s\n", word, st.bold(f.ID), text); err != nil {
			return err
		}
		if f.Fix == "" {
			continue
		}
		if err := a.printf("%s  to mend it: %s\n", strings.Repeat(" ", len(diagnosis.Warning)), inLine(f.Fix)); err != nil {
			return err
		}
	}
	return nil
}
