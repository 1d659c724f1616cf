package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"skep/host/client"
	"skep/host/internal/spelling"
)

// common are the flags that commands share.
type common struct {
	config    string
	data      string
	output    string
	url       string
	tokenFile string
	// tls are the files of calls over https.
	tls client.TLS
	// set holds the flags that a flag or a variable has set.
	set map[string]bool
	// setByFlag holds the flags that the command line has set.
	setByFlag map[string]bool
}

// Values of --output.
const (
	outputText = "text"
	outputJSON = "json"
)

func (c *common) register(fs *pflag.FlagSet) {
	fs.StringVarP(&c.config, "config", "c", "swarm.toml", "the swarm's `FILE`")
	fs.StringVar(&c.data, "data", "", "the data `DIR` (default .skep beside the swarm's file); commands on data also take a DSN, as env::NAME")
	fs.StringVarP(&c.output, "output", "o", outputText, "`FORMAT` of what is printed: text or json")
}

// registerCalls adds the flags of commands that call a running host.
func (c *common) registerCalls(fs *pflag.FlagSet) {
	fs.StringVar(&c.url, "url", "", "`URL` of the host (default from [server] listen)")
	fs.StringVar(&c.tokenFile, "token-file", "", "`FILE` that holds the token (default $SKEP_TOKEN, then the host's operator.key)")
	fs.StringVar(&c.tls.CA, "ca-file", "", "`FILE` with the certificates that vouch for an https host (default: the system's)")
	fs.StringVar(&c.tls.Cert, "client-cert", "", "`FILE` with the certificate that the caller shows an https host")
	fs.StringVar(&c.tls.Key, "client-key", "", "`FILE` with the key of --client-cert")
}

// callFlags are those that registerCalls adds.
func callFlags() []string {
	return []string{"url", "token-file", "ca-file", "client-cert", "client-key"}
}

// ownFlag marks a flag that has the name of a common one and another meaning.
const ownFlag = "own"

// ownOutput adds -o as a directory. The format of what is printed is left to its
// variable.
func ownOutput(fs *pflag.FlagSet, dir *string, usage string) {
	fs.StringVarP(dir, "output", "o", ".", usage)
	fs.Lookup("output").Annotations = map[string][]string{ownFlag: {}}
}

// complete fills flags that were not given from SKEP_*, and checks them.
func (c *common) complete(fs *pflag.FlagSet, env Env) error {
	c.set, c.setByFlag = map[string]bool{}, map[string]bool{}
	for _, name := range append([]string{"config", "data", "output"}, callFlags()...) {
		flag := fs.Lookup(name)
		if flag == nil {
			continue
		}
		if fs.Changed(name) && flag.Annotations[ownFlag] == nil {
			c.set[name], c.setByFlag[name] = true, true
			continue
		}
		value := env.get(variable(name))
		if value == "" {
			continue
		}
		c.set[name] = true
		if flag.Annotations[ownFlag] != nil {
			c.output = value
			continue
		}
		if err := flag.Value.Set(value); err != nil {
			return usagef("%s: %w", name, err)
		}
	}
	if c.output != outputText && c.output != outputJSON {
		return usagef("--output is text or json, not %q", c.output)
	}
	return c.wholePair()
}

// wholePair checks that a client's certificate and its key are given together.
func (c *common) wholePair() error {
	has, lacks := "client-cert", "client-key"
	if c.tls.Cert == "" {
		has, lacks = lacks, has
	}
	if (c.tls.Cert == "") == (c.tls.Key == "") {
		return nil
	}
	if !c.setByFlag[has] {
		return usagef("%s is set, and --%s (%s) is not: both or neither", variable(has), lacks, variable(lacks))
	}
	return usagef("--%s needs --%s (%s) beside it: both or neither", has, lacks, variable(lacks))
}

// variable is the one that stands for a flag.
func variable(flag string) string {
	return "SKEP_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// minFlagPart is how many letters a flag has in common with a longer or shorter form of it.
const minFlagPart = 4

// nearestFlag returns the flag whose name differs least from a mistyped one, or else begins
// like it, as lang for language; empty for none.
func nearestFlag(fs *pflag.FlagSet, name string) string {
	best, least := "", 1+len(name)/3
	fs.VisitAll(func(f *pflag.Flag) {
		if d := spelling.Distance(name, f.Name, 2); d <= least && (best == "" || d < least) {
			best, least = f.Name, d
		}
	})
	if best != "" {
		return best
	}
	fs.VisitAll(func(f *pflag.Flag) {
		short, long := f.Name, name
		if len(short) > len(long) {
			short, long = long, short
		}
		if len(short) >= minFlagPart && strings.HasPrefix(long, short) {
			best = f.Name
		}
	})
	return best
}
