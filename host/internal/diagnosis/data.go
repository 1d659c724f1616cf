package diagnosis

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/pathcheck"
	"skep/host/internal/peer/registry"
	"skep/host/internal/quarantine"
)

func (d *diagnosis) checkData(ctx context.Context) {
	onServer := d.checkServer(ctx)
	info, err := os.Stat(d.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isLink(d.DataDir):
		lacks := "knows of no earlier task"
		if d.Config.Store.Driver == config.DriverPostgres {
			lacks = "finds its tasks on the server, and begins a new audit log"
		}
		d.add(DataMissing, Warning, d.DataDir, "name the directory of the host with --data, or mount its disk; for a new host skep serve makes it",
			"there is no data directory: a host that starts here %s", lacks)
		return
	case err != nil:
		d.add(DataUnusable, Error, d.DataDir, "choose another one with --data", "the data directory cannot be used: %v", err)
		return
	case !info.IsDir():
		d.add(DataUnusable, Error, d.DataDir, "move the file away, or choose another directory with --data", "the data directory is a file")
		return
	}
	if _, err := os.ReadDir(d.DataDir); err != nil {
		d.add(DataUnusable, Error, d.DataDir, "run skep doctor as the host's user", "the data directory cannot be read: %v", err)
		return
	}
	d.checkReplaceable(DataReplaceable, d.DataDir, pathcheck.Dir(d.DataDir))
	d.checkKeyFiles()
	data := datadir.Data{Dir: d.DataDir, Store: d.Config.Store}
	healthy := onServer
	if d.Config.Store.Driver != config.DriverPostgres {
		healthy = d.checkStore(ctx, data)
	}
	d.checkLogs(data)
	d.checkQuarantine(ctx, data, healthy)
	if healthy && (onServer || data.Exists() == nil) {
		d.checkQuotas(ctx, data)
	}
	path := filepath.Join(d.DataDir, datadir.RegistryName)
	if err := registry.Check(path); err != nil {
		d.add(PeersDamaged, Error, path, "restore the file from a backup, or remove it: swarms register again", "%v", err)
	}
}

// isLink reports whether a path is a symbolic link, which may lead nowhere.
func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// checkServer looks at the PostgreSQL server of the file. It reports whether there is one without fault.
func (d *diagnosis) checkServer(ctx context.Context) (healthy bool) {
	if d.Config.Store.Driver != config.DriverPostgres {
		return false
	}
	_, faults, err := datadir.InspectServer(ctx, d.Config)
	for _, f := range faults {
		d.add(StoreServer, Error, f.Path, f.Fix, "%s", f.String())
	}
	if err != nil {
		d.add(StoreServer, Error, "store", "look at the server's log", "%v", err)
	}
	return err == nil && len(faults) == 0
}

// keyringName is the file of the keys that seal what tenants store.
const keyringName = "keyring"

// checkKeyFiles reports keys of the data directory that other users can read.
func (d *diagnosis) checkKeyFiles() {
	entries, err := os.ReadDir(d.DataDir)
	if err != nil {
		return // it is unusable, or not made yet
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".key" && e.Name() != keyringName {
			continue
		}
		path := filepath.Join(d.DataDir, e.Name())
		if info, err := os.Stat(path); err == nil && pathcheck.Grants(info.Mode(), 0o077) {
			d.add(KeyReadable, Error, path, "chmod 600 "+pathcheck.Quote(path), "other users of this machine can read the key (mode %#o)", info.Mode().Perm())
		}
	}
}

// checkStore reads the keyring and the database, whether or not a host uses them. It reports whether
// they can be read, or the first host is to make them.
func (d *diagnosis) checkStore(ctx context.Context, data datadir.Data) (healthy bool) {
	ring := filepath.Join(d.DataDir, keyringName)
	if data.Exists() != nil {
		return true
	}
	if d.has(KeyReadable, ring) {
		return false
	}
	if _, err := os.Stat(ring); errors.Is(err, fs.ErrNotExist) {
		d.add(KeyringMissing, Error, ring, "put the keyring of this store back, from the copy that skep backup --with-keyring made",
			"the store is there and its keyring is not: what tenants have stored cannot be read")
		return false
	}
	var locked *datadir.KeyError
	switch err := data.CheckKeyring(); {
	case errors.As(err, &locked):
		d.add(KeyringLocked, Error, "[store] keyring", "set [store] keyring to the key that wraps the keyring", "%v", err)
		return false
	case err != nil:
		d.add(KeyringDamaged, Error, ring, "put the keyring of this store back, from a copy", "%v", err)
		return false
	}
	damaged, err := data.CheckStore(ctx)
	switch {
	case err != nil:
		d.add(StoreUnreadable, Error, d.DataDir, "use the version of skep, or the data directory, that the message names", "%v", err)
	case damaged != "":
		d.add(StoreDamaged, Error, d.DataDir, "stop the host and restore the last backup into an empty directory: skep restore FILE --data DIR", "the database is damaged: %s", damaged)
	}
	return err == nil && damaged == ""
}

// checkLogs verifies the chains of the audit log and of the log of foreign messages.
func (d *diagnosis) checkLogs(data datadir.Data) {
	const fix = "keep its files as evidence, and move them out of the data directory: the host begins a new log"
	_, err := datadir.VerifyAudit(data.AuditFile(), "", "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.add(AuditDamaged, Error, data.AuditFile(), fix, "%v", err)
	}
	_, err = datadir.VerifyMessageLog(data.MessageLogFile(), "", "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.add(AuditDamaged, Error, data.MessageLogFile(), fix, "%v", err)
	}
}

// checkQuarantine reads the agents in quarantine from the store, where that can be read, and the file
// in which an earlier version has left them.
func (d *diagnosis) checkQuarantine(ctx context.Context, data datadir.Data, healthy bool) {
	path := filepath.Join(d.DataDir, datadir.QuarantineName)
	if _, err := quarantine.ReadFile(path); err != nil {
		d.add(QuarantineDamaged, Error, path, "remove the file, which releases its agents", "%v", err)
		return
	}
	if !healthy {
		return
	}
	list, err := data.Quarantine(ctx)
	if err != nil {
		d.add(StoreUnreadable, Error, data.Place(), "run skep doctor again, or look at the server", "the agents in quarantine cannot be read: %v", err)
	}
	for _, c := range list {
		d.add(AgentQuarantined, Warning, c.Agent+" of "+c.Tenant, "replace its module, and then: skep agent release "+c.Agent+" --tenant "+c.Tenant, "the agent does not run: %s", c.Why)
	}
}

// quotaEnds has for each quota what a tenant gets that has used it up, and how that ends by itself.
var quotaEnds = map[string][2]string{
	"messages_per_day": {"its posts are refused", "wait until tomorrow (UTC)"},
	"storage":          {"its posts are refused", "shorten [store] history_retention"},
	"tokens_per_day":   {"its calls of models are refused", "wait until tomorrow (UTC)"},
	"usd_per_day":      {"its calls of models are refused", "wait until tomorrow (UTC)"},
}

// checkQuotas reports tenants that have used up a quota.
func (d *diagnosis) checkQuotas(ctx context.Context, data datadir.Data) {
	list, err := data.Tenants(ctx, d.Config)
	switch {
	case errors.Is(err, datadir.ErrNoStore):
		d.add(DataMissing, Warning, data.Place(), "name the schema of the host with search_path in [store] dsn; for a new host skep serve makes its tables",
			"there is no store on the server: a host that starts here knows of no earlier task")
	case err != nil:
		d.add(StoreUnreadable, Error, data.Place(), "run skep doctor again, or look at the server", "what tenants use cannot be read: %v", err)
	}
	for _, t := range list {
		for _, q := range t.Quota {
			if q.Limit <= 0 || q.Used < q.Limit {
				continue
			}
			used, ends := "all of its "+q.Name, quotaEnds[q.Name]
			d.add(TenantQuota, Warning, "[tenants."+t.Name+"] "+q.Name, "raise [tenants."+t.Name+"] "+q.Name+" in the file, or "+ends[1],
				"the tenant %s has used %s, and %s; skep tenant list shows how much", t.Name, used, ends[0])
		}
	}
}
