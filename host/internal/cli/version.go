package cli

import (
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
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
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
			return a.printf("skep %s\nMAIL %s\nABI %d\ngo %s\nwazero %s\nplatform %s\n",
				v.Skep, v.MAIL, v.ABI, strings.TrimPrefix(v.Go, "go"), v.Wazero, v.Platform)
		}),
	}
}
