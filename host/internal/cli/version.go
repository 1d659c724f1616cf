package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"skep/abi"
)

// protocol is the version of MAIL that hosts speak.
const protocol = "1.3"

// versions are what this program is made of.
type versions struct {
	Skep     string `json:"skep"`
	Revision string `json:"revision,omitempty"`
	Date     string `json:"date,omitempty"`
	MAIL     string `json:"mail"`
	ABI      int    `json:"abi"`
	Go       string `json:"go"`
	Wazero   string `json:"wazero"`
	Platform string `json:"platform"`
}

func readVersions() versions {
	v := versions{
		Skep: "dev", MAIL: protocol, ABI: abi.Version, Go: runtime.Version(), Wazero: "unknown",
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if tag := info.Main.Version; tag != "" && tag != "(devel)" {
		v.Skep = strings.TrimPrefix(tag, "v")
	}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified {
		v.Revision += "+changes"
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/tetratelabs/wazero" {
			v.Wazero = strings.TrimPrefix(dep.Version, "v")
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print what this program is made of", GroupID: groupCheck,
		Example: "  skep version\n  skep version -o json", Args: atMost(0),
		RunE: a.command(func(*cobra.Command, []string) error {
			v := readVersions()
			if a.json() {
				return a.printJSON(v)
			}
			return a.printf("skep %s\ncommit %s\ndate %s\nMAIL %s\nABI %d\ngo %s\nwazero %s\nplatform %s\n",
				v.Skep, cmp.Or(v.Revision, "unknown"), cmp.Or(v.Date, "unknown"), v.MAIL, v.ABI, strings.TrimPrefix(v.Go, "go"), v.Wazero, v.Platform)
		}),
	}
}
