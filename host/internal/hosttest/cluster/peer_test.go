package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// federatedFile is a swarm whose agents may write to all others.
func federatedFile(name string) string {
	return strings.NewReplacer("NAME", name, "TARGETS", `"*@*"`).Replace(hosttest.FederatedSwarm)
}

// TestSharedPeer: hosts that share a server are one swarm to another one. It is registered at one of them, all write to
// it, sign with one key, and take what it sends for tasks of the others. Tasks of a lost host get their answers.
func TestSharedPeer(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	dsn := pgtest.Schema(t)
	showsHive := fmt.Sprintf("[[auth.keys]]\nid = \"depot\"\nrole = \"agent\"\nkey = %q\n", hosttest.PeerKey("depot", "hive"))
	var hosts []*hosttest.Process
	for range 2 {
		p := hosttest.NewProcess(t, "127.0.0.1")
		p.Server = "sign_letters = true\n"
		launchShared(t, p, dsn, p.Addr, federatedFile("hive")+showsHive)
		hosts = append(hosts, p)
	}
	var alice []*client.Client
	for _, p := range hosts {
		alice = append(alice, p.ClientAs(hosttest.AliceKey))
	}
	depotFile := federatedFile("depot") + hosttest.PeerTables("depot", "hive", "http://"+hosts[1].Addr, "2m")
	depot := hosttest.NewSite(t, depotFile+fmt.Sprintf("verify_key = %q\n", signingKey(t, hosts[0], dsn)))
	registerDepot(t, hosts[0], hosts[1], depot)
	for i := range 6 { // tasks of both hosts, through both
		id := fmt.Sprint("out", i)
		wantRemoteAnswer(t, alice[i%2], id, "math@depot", "x")
		checkTaskMail(t, alice[(i+1)%2], id, map[string]int{"boss": 3})
		wantRemoteAnswer(t, depot.As(hosttest.AliceKey), fmt.Sprint("in", i), "math@hive", "x")
	}
	lost := postSlow(t, alice[0])
	hosts[0].Kill()
	for _, id := range lost {
		if err := hosttest.Follow(t.Context(), alice[1], id); err != nil {
			t.Error(err)
		}
		checkTaskMail(t, alice[1], id, map[string]int{"boss": 3})
	}
	// A host that is started again has the token, and all sign with a new key.
	hosts[0].Start()
	key, err := sharedData(hosts[0], dsn).RotateSigningKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	depot.Write(depotFile + fmt.Sprintf("verify_key = %q\n", key))
	depot.Restart() // at another address
	registerDepot(t, hosts[1], hosts[0], depot)
	for i, c := range alice {
		hosttest.Eventually(t, "the host at "+hosts[i].Addr+" signs with the new key", func() bool {
			a, err := c.PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "x")})
			return err == nil && a.Body == "boss got [Re: s] echo: x"
		})
	}
}

// registerDepot registers depot at a host and waits until another one has read that.
func registerDepot(t *testing.T, at, other *hosttest.Process, depot *hosttest.Site) {
	t.Helper()
	here := client.Registration{Name: "depot", BaseURL: depot.URL(), Token: hosttest.PeerKey("hive", "depot"), Lasting: true}
	if _, err := at.ClientAs(operatorKey).RegisterSwarm(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	op := other.ClientAs(operatorKey)
	hosttest.Eventually(t, "the host at "+other.Addr+" reads the registry again", func() bool {
		list, err := op.Peers(t.Context())
		return err == nil && len(list) == 1 && list[0].Name == "depot" && list[0].BaseURL == depot.URL()
	})
}

// signingKey is the public key with which a host signs, as skep peer key prints it.
func signingKey(t *testing.T, p *hosttest.Process, dsn string) string {
	t.Helper()
	key, err := sharedData(p, dsn).SigningKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sharedData is the data of a host that shares the schema at a DSN.
func sharedData(p *hosttest.Process, dsn string) datadir.Data {
	store := config.Store{Driver: config.DriverPostgres, DSN: config.Secret(dsn), Keyring: config.Secret(strings.Repeat("5e", 32))}
	return datadir.Data{Dir: p.Data(), Store: store}
}

// wantRemoteAnswer asks an agent of another swarm and wants its answer.
func wantRemoteAnswer(t *testing.T, c *client.Client, id, target, body string) {
	t.Helper()
	a, err := c.PostMessage(t.Context(), client.Post{Task: id, Body: hosttest.RequestOf(target, body)})
	if err != nil || a.Body != "boss got [Re: s] echo: "+body {
		t.Fatalf("%s: %q, %v", id, a.Body, err)
	}
}

// postSlow posts tasks that ask the other swarm's agent, which takes a while.
func postSlow(t *testing.T, c *client.Client) (ids []string) {
	t.Helper()
	for i := range 8 {
		id := fmt.Sprint("slow", i)
		post := client.Post{Task: id, Body: hosttest.RequestOf("math@depot", `[["sleep",{"ms":1500}],["send_response",{"target":"boss@hive","subject":"Re: s","body":"late"}]]`)}
		if _, err := c.PostAsync(t.Context(), post); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
