package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"skep/host/internal/diagnosis"
	"skep/host/internal/diskspace"
)

func (p *patient) space(byteCount, files uint64) {
	p.machine.Space = func(string) (diskspace.Free, error) {
		return diskspace.Free{Bytes: byteCount, Files: files, Counted: true}, nil
	}
}

// overwrite changes bytes of a file of the data directory.
func (p *patient) overwrite(name string, at int64, text []byte) {
	p.t.Helper()
	f, err := os.OpenFile(filepath.Join(p.data, name), os.O_WRONLY, 0)
	p.must(err)
	_, err = f.WriteAt(text, at)
	p.must(err)
	p.must(f.Close())
}

// putBack plants a fault in the data directory whose fix is a copy from before.
func putBack(id, fix string, plant func(*patient)) fault {
	var restore func()
	return fault{id, fix, func(p *patient) {
		restore = p.keep(p.data)
		plant(p)
	}, func(*patient, diagnosis.Finding) { restore() }}
}

func remove(name string) func(*patient, diagnosis.Finding) {
	return func(p *patient, _ diagnosis.Finding) { p.must(os.Remove(filepath.Join(p.data, name))) }
}

func dataFaults() []fault {
	return []fault{
		{diagnosis.DataReplaceable, "right to write", func(p *patient) { p.must(os.Chmod(p.data, 0o777)) },
			func(p *patient, _ diagnosis.Finding) { p.must(os.Chmod(p.data, 0o700)) }},
		{diagnosis.DataUnusable, "move the file away", func(p *patient) {
			p.must(os.RemoveAll(p.data))
			p.write(".skep", "")
		}, func(p *patient, _ diagnosis.Finding) {
			p.must(os.Rename(p.data, p.data+".away"))
			p.run("run", "hello", "--data", p.data)
		}},
		putBack(diagnosis.DataMissing, "--data", func(p *patient) { p.must(os.RemoveAll(p.data)) }),
		{diagnosis.TenantQuota, "[tenants.default] storage", func(p *patient) { p.also("[tenants.default]\nstorage = 1\n") }, healed},
		{diagnosis.KeyReadable, "chmod 600", func(p *patient) { p.must(os.Chmod(filepath.Join(p.data, "keyring"), 0o644)) }, shellFix},
		putBack(diagnosis.StoreDamaged, "skep restore FILE", func(p *patient) {
			// Page 1 has the schema, which is read when the store is opened.
			p.overwrite("skep.db", 3*4096, bytes.Repeat([]byte{0xff}, 4096))
		}),
		putBack(diagnosis.StoreUnreadable, "data directory", func(p *patient) {
			p.overwrite("skep.db", 68, []byte("OTHR")) // the application id (https://www.sqlite.org/fileformat.html)
		}),
		putBack(diagnosis.KeyringMissing, "skep backup --with-keyring", func(p *patient) {
			p.must(os.Remove(filepath.Join(p.data, "keyring")))
		}),
		putBack(diagnosis.KeyringDamaged, "from a copy", func(p *patient) { p.overwrite("keyring", 8, []byte("????")) }),
		{diagnosis.KeyringLocked, "[store] keyring", func(p *patient) {
			p.vars["WRAP"] = strings.Repeat("ab", 32)
			p.also("[store]\nkeyring = \"env::WRAP\"\n")
			p.run("run", "hello", "--data", p.data)
			p.heal()
		}, func(p *patient, _ diagnosis.Finding) { p.also("[store]\nkeyring = \"env::WRAP\"\n") }},
		{diagnosis.AuditDamaged, "move them out", func(p *patient) {
			name := filepath.Join(p.data, "audit.log")
			text, err := os.ReadFile(name)
			p.must(err)
			p.must(os.WriteFile(name, bytes.Replace(text, []byte("data.backup"), []byte("data.nothing"), 1), 0o600))
		}, func(p *patient, _ diagnosis.Finding) {
			files, err := filepath.Glob(filepath.Join(p.data, "audit.log*"))
			p.must(err)
			for _, f := range files {
				p.must(os.Rename(f, p.path(filepath.Base(f))))
			}
		}},
		{diagnosis.QuarantineDamaged, "remove the file", func(p *patient) { p.write(".skep/quarantine.json", "{") }, remove("quarantine.json")},
		{diagnosis.AgentQuarantined, "skep agent release boss --tenant default", func(p *patient) {
			p.write(".skep/quarantine.json", `{"version":1,"agents":[{"tenant":"default","swarm":"hive","agent":"boss","since":"2026-11-20T12:00:00Z","why":"it killed the host"}]}`)
		}, remove("quarantine.json")},
		{diagnosis.PeersDamaged, "remove it", func(p *patient) { p.write(".skep/registry.json", "{") }, remove("registry.json")},
	}
}
