package cli

import (
	"encoding/json"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"

	"skep/host/internal/diagnosis"
	"skep/host/internal/guests"
	"skep/host/internal/turn/process"
)

// patient is a host that doctor looks at: its file, data and cache, and its machine.
type patient struct {
	t                *testing.T
	dir, data, cache string
	file             string
	vars             map[string]string
	machine          diagnosis.Machine
	args             []string
}

const patientText = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
`

// serverText is the table of the addresses, free ones.
const serverText = "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n"

// newPatient is a host in dir, on a machine where nothing is scarce.
func newPatient(t *testing.T, dir string) *patient {
	p := &patient{
		t: t, dir: dir, data: filepath.Join(dir, ".skep"), cache: filepath.Join(dir, "cache"), file: filepath.Join(dir, "swarm.toml"),
		vars: map[string]string{"OPERATOR": "a-key-of-the-operator-on-this-machine"}, machine: diagnosis.ThisMachine(),
	}
	p.machine.Confinements = func(string) ([]process.Confinement, error) { return nil, nil }
	p.machine.OpenFiles = func() uint64 { return 1 << 20 }
	return p
}

// healthyPatient has worked on a task, and has a backup and an audit log.
func healthyPatient(t *testing.T) *patient {
	t.Helper()
	p := newPatient(t, t.TempDir())
	p.heal()
	p.must(os.Mkdir(p.cache, 0o700))
	p.run("run", "hello", "--data", p.data)
	p.run("backup", p.path("backup"), "--with-keyring")
	return p
}

// copied is a copy of a patient for another test.
func (p *patient) copied(t *testing.T) *patient {
	t.Helper()
	of := newPatient(t, t.TempDir())
	of.copyTree(p.dir, of.dir)
	return of
}

// copyTree copies a directory with the modes of its files.
func (p *patient) copyTree(from, to string) {
	p.t.Helper()
	p.must(exec.CommandContext(p.t.Context(), "cp", "-a", from+"/.", to).Run())
}

func (p *patient) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) path(name string) string { return filepath.Join(p.dir, name) }

func (p *patient) write(name, text string) {
	p.t.Helper()
	p.must(os.WriteFile(p.path(name), []byte(text), 0o600))
}

// also writes the file with more in it.
func (p *patient) also(text string) { p.write("swarm.toml", patientText+serverText+text) }

func (p *patient) heal() { p.also("") }

// call runs a command beside the file.
func (p *patient) call(args ...string) (int, *shell) {
	s := newShell(p.vars, append(args, "-c", p.file)...)
	s.Bundled, s.Cache, s.Machine = inProgram{guests.Bytes(p.t, "plugins/script")}, p.cache, &p.machine
	return Main(p.t.Context(), s.Env), s
}

// run is call for a command that must go well.
func (p *patient) run(args ...string) string {
	p.t.Helper()
	code, s := p.call(args...)
	if code != exitOK {
		p.t.Fatalf("%v: %d\n%s%s", args, code, s.stdout.String(), s.stderr.String())
	}
	return s.stdout.String()
}

// diagnose runs doctor.
func (p *patient) diagnose() (found []diagnosis.Finding, code int) {
	p.t.Helper()
	code, s := p.call(append([]string{"doctor", "-o", "json"}, p.args...)...)
	var out struct{ Findings []diagnosis.Finding }
	if err := json.Unmarshal(s.stdout.Bytes(), &out); err != nil {
		p.t.Fatalf("doctor: %d, %v\n%s%s", code, err, s.stdout.String(), s.stderr.String())
	}
	return out.Findings, code
}

// shellFix runs the fix of a finding as it is printed.
func shellFix(p *patient, f diagnosis.Finding) {
	out, err := exec.CommandContext(p.t.Context(), "sh", "-c", f.Fix).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v %s", f.Fix, err, out)
	}
}

// fault is one that is planted; mend does what the finding says.
type fault struct {
	id    string
	fix   string
	plant func(*patient)
	mend  func(*patient, diagnosis.Finding)
}

// keep returns how the file or directory is put back as it is now.
func (p *patient) keep(path string) (restore func()) {
	kept := filepath.Join(p.t.TempDir(), "kept")
	p.must(os.MkdirAll(kept, 0o700))
	info, err := os.Stat(path)
	p.must(err)
	if info.IsDir() {
		p.copyTree(path, kept)
		return func() { p.must(os.RemoveAll(path)); p.must(os.Mkdir(path, 0o700)); p.copyTree(kept, path) }
	}
	text, err := os.ReadFile(path)
	p.must(err)
	return func() { p.must(os.WriteFile(path, text, 0o600)) }
}

// TestDoctorFindsFaults: each planted fault is found by its id and nothing else is, its fix
// mends it, and nothing is wrong with a host in good health.
func TestDoctorFindsFaults(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	healthy := healthyPatient(t)
	if found, code := healthy.diagnose(); len(found) > 0 || code != exitOK {
		t.Fatalf("in good health: %d %+v", code, found)
	}
	faults := slices.Concat(fileFaults(), machineFaults(), dataFaults(), certificateFaults(), onlineFaults())
	for _, f := range faults {
		tried[f.id] = true
	}
	for _, id := range diagnosis.IDs() {
		if !tried[id] && id != diagnosis.StoreServer { // TestDoctorFindsServerFaults plants those
			t.Errorf("no fault with the id %s is planted", id)
		}
	}
	for _, f := range faults {
		t.Run(f.id, func(t *testing.T) {
			t.Parallel()
			p := healthy.copied(t)
			f.plant(p)
			found, code := p.diagnose()
			if len(found) != 1 || found[0].ID != f.id || !strings.Contains(found[0].Fix, f.fix) {
				t.Fatalf("%d %+v", code, found)
			}
			if (code == exitNonconforming) != (found[0].Severity == diagnosis.Error) {
				t.Errorf("the exit code is %d of %+v", code, found[0])
			}
			f.mend(p, found[0])
			if found, code := p.diagnose(); len(found) > 0 || code != exitOK {
				t.Errorf("after the fix %q: %d %+v", f.fix, code, found)
			}
		})
	}
}

func healed(p *patient, _ diagnosis.Finding) { p.heal() }

func fileFaults() []fault {
	return []fault{
		{diagnosis.FileMissing, "-c FILE", func(p *patient) { p.must(os.Remove(p.file)) }, healed},
		{diagnosis.FileInvalid, "swarm.toml:12", func(p *patient) { p.also("nonsense = 1\n") }, healed},
		{diagnosis.FileInvalid, "with the variables of the host", func(p *patient) {
			p.also("[[auth.keys]]\nid = \"op\"\nrole = \"operator\"\nkey = \"env::OTHER\"\n")
		}, func(p *patient, _ diagnosis.Finding) { p.vars["OTHER"] = p.vars["OPERATOR"] }},
		{diagnosis.FileWarning, "", func(p *patient) {
			p.certificate(time.Now().Add(-time.Hour), time.Now().Add(1000*time.Hour))
			p.must(os.Chmod(p.path("key.pem"), 0o644))
		}, func(p *patient, _ diagnosis.Finding) { p.must(os.Chmod(p.path("key.pem"), 0o600)) }},
		{diagnosis.FileReplaceable, "right to write", func(p *patient) { p.must(os.Chmod(p.file, 0o666)) },
			func(p *patient, _ diagnosis.Finding) { p.must(os.Chmod(p.file, 0o644)) }},
		{diagnosis.ModuleRefused, "change line", func(p *patient) {
			p.write("swarm.toml", strings.Replace(patientText, "source =", "sha256 = \""+strings.Repeat("0", 64)+"\"\nsource =", 1)+serverText)
		}, healed},
	}
}

func machineFaults() []fault {
	return []fault{
		{diagnosis.CacheReplaceable, "right to write", func(p *patient) { p.must(os.Chmod(p.cache, 0o777)) },
			func(p *patient, _ diagnosis.Finding) { p.must(os.Chmod(p.cache, 0o700)) }},
		{diagnosis.CacheUnusable, "remove the file", func(p *patient) {
			p.must(os.RemoveAll(p.cache))
			p.write("cache", "")
		}, func(p *patient, _ diagnosis.Finding) { p.must(os.Remove(p.cache)) }},
		{diagnosis.ClockBehind, "set the clock", func(p *patient) {
			p.machine.Now = func() time.Time { return time.Now().Add(-24 * time.Hour) }
		}, func(p *patient, _ diagnosis.Finding) { p.machine.Now = time.Now }},
		{diagnosis.DiskLow, "make room", func(p *patient) { p.space(1<<20, 1<<20) }, func(p *patient, _ diagnosis.Finding) { p.space(1<<40, 1<<20) }},
		{diagnosis.InodesLow, "remove files", func(p *patient) { p.space(1<<40, 3) }, func(p *patient, _ diagnosis.Finding) { p.space(1<<40, 1<<20) }},
		{diagnosis.OpenFilesLow, "max_connections", func(p *patient) { p.machine.OpenFiles = func() uint64 { return 1024 } },
			func(p *patient, _ diagnosis.Finding) { p.also("max_connections = 256\n") }},
		{diagnosis.AddressTaken, "[server] listen", func(p *patient) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			p.must(err)
			p.t.Cleanup(func() { _ = l.Close() })
			p.write("swarm.toml", patientText+strings.Replace(serverText, "127.0.0.1:0", l.Addr().String(), 1))
		}, healed},
		{diagnosis.AddressUnusable, "[server] listen", func(p *patient) {
			p.args = []string{"--plain-http"}
			p.write("swarm.toml", patientText+strings.Replace(serverText, "127.0.0.1", "192.0.2.1", 1)+"[[auth.keys]]\nid = \"op\"\nrole = \"operator\"\nkey = \"env::OPERATOR\"\n")
		}, healed},
		{diagnosis.ConfinementMissing, "kernel", func(p *patient) {
			p.also("[limits]\nprocess_cgroup = \"/sys/fs/cgroup/hive\"\n")
			p.confine("landlock")
		}, func(p *patient, _ diagnosis.Finding) { p.confine("") }},
		{diagnosis.CgroupUnusable, "[limits] process_cgroup", func(p *patient) {
			p.also("[limits]\nprocess_cgroup = \"/sys/fs/cgroup/hive\"\n")
			p.confine("cgroup")
		}, healed},
	}
}

// confine leaves one confinement out.
func (p *patient) confine(without string) {
	p.machine.Confinements = func(string) (all []process.Confinement, err error) {
		for _, name := range []string{"landlock", "seccomp", "own root", "cgroup"} {
			all = append(all, process.Confinement{Name: name, InForce: name != without, Detail: "as this machine has it"})
		}
		return all, nil
	}
}

// certificate makes the pair that [server.tls] names, and names it.
func (p *patient) certificate(begins, ends time.Time) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.must(err)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begins, NotAfter: ends, DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	p.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	p.must(err)
	p.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	p.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	p.also("[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n")
}

func certificateFaults() []fault {
	renew := func(p *patient, _ diagnosis.Finding) { p.certificate(time.Now(), time.Now().Add(1000*time.Hour)) }
	return []fault{
		{diagnosis.CertificateExpired, "new certificate", func(p *patient) {
			p.certificate(time.Now().Add(-1000*time.Hour), time.Now().Add(-time.Hour))
		}, renew},
		{diagnosis.CertificateEnds, "new certificate", func(p *patient) {
			p.certificate(time.Now().Add(-1000*time.Hour), time.Now().Add(24*time.Hour))
		}, renew},
	}
}
