package config

// LoadModules reads what is needed to run recorded turns again, and nothing
// else, from the file at path, as [Listen] does: the sources of the agents, the
// limits and the [store] table. Keys, secrets and addresses that env:: names
// need not be set.
func LoadModules(path string, opt Options) (*Config, error) {
	d, file, err := open(path, opt)
	if err != nil {
		return nil, err
	}
	c := &Config{File: path, Dir: d.dir, src: d.src, root: file.node}
	names, subs := file.named("agents")
	for i, sub := range subs {
		a := Agent{Name: names[i], SHA256: sub.digest("sha256"), Trusted: sub.boolean("trusted", false), Pos: d.pos(sub.location)}
		a.Source = d.source(sub, a.SHA256, a.Trusted)
		c.Agents = append(c.Agents, a)
	}
	file.section("limits", c.Limits.Settings())
	c.Store = d.store(file.table("store"))
	if len(d.faults) > 0 {
		return nil, d.result()
	}
	return c, nil
}
