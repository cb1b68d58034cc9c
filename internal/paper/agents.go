package paper

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// Some claims are about the programs that a network runs on each node: its agents. A lab's
// networks are rebuilt without these programs, so such claims have a campaign of their own on
// clusters (kubernetes.yaml), and only records of a Kubernetes judge them.

// standardMTU is that of clusters whose paper names none.
const standardMTU = 1500

// needsAgents reports whether only the networks' own agents can decide the claim.
func (c Claim) needsAgents() bool { return c.Testbed == campaign.Kubernetes }

// OfAgents is the part of a paper that kubernetes.yaml measures: its claims, cells and campaign.
// ok is false where the paper's folder has no such file.
func (p Paper) OfAgents() (part Paper, ok bool) {
	if p.Kubernetes == nil {
		return p, false
	}
	part = p
	part.agentsOnly, part.Campaign, part.Used = true, p.Kubernetes, p.usedOfAgents
	part.Publication.Tables, part.Claims, part.uses = nil, nil, nil
	for i, c := range p.Claims {
		if c.needsAgents() {
			part.Claims, part.uses = append(part.Claims, c), append(part.uses, p.uses[i])
		}
	}
	return part, true
}

// HasClaimsOfAgents reports whether any claim is about the networks' own agents.
func (p Paper) HasClaimsOfAgents() bool { return slices.ContainsFunc(p.Claims, Claim.needsAgents) }

// AgentsOnly reports whether the paper is the part that OfAgents gives.
func (p Paper) AgentsOnly() bool { return p.agentsOnly }

// Measured are the claims that the paper's campaign measures.
func (p Paper) Measured() []Claim {
	return slices.DeleteFunc(slices.Clone(p.Claims), p.elsewhere)
}

// elsewhere reports whether another campaign than the paper's measures a claim.
func (p Paper) elsewhere(c Claim) bool { return c.needsAgents() && !p.agentsOnly }

// whereAgentsAre says what decides claims about agents.
func (p Paper) whereAgentsAre() string {
	return fmt.Sprintf("needs the networks' own agents: cnibench reproduce %s --testbed kubernetes", p.ID)
}

// onClusters are the cells of kubernetes.yaml, with the networks that it expects on its clusters;
// none where the folder has no such file.
func (p *Paper) onClusters(papers fs.FS, known campaign.Known) (planned, error) {
	none := newPlanned(KubernetesFile, nil, known)
	name := path.Join(p.ID, KubernetesFile)
	data, err := fs.ReadFile(papers, name)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	c, err := campaign.Parse(name, data, known)
	if err != nil {
		return none, err
	}
	tree, err := campaign.ReadTree(name, data)
	if err != nil {
		return none, err
	}
	if err := checkClusters(tree, c); err != nil {
		return none, err
	}
	p.Kubernetes = data
	mtu := standardMTU
	if n, named := p.Publication.Cells["mtu"].(float64); named {
		mtu = int(n)
	}
	for i, cluster := range c.Clusters {
		c.Clusters[i].Found = campaign.Found{Network: cluster.Network, MTU: mtu,
			Enforces: slices.Contains(known.Enforcing, cluster.Network) || !slices.Contains(known.Networks, cluster.Network)}
		p.ofClusters = append(p.ofClusters, cluster.Network)
	}
	return newPlanned(KubernetesFile, plan.Cells(c), withNetworks(known, p.ofClusters)), nil
}

// withNetworks are the known names with those of networks that clusters have, which need not be
// a lab's.
func withNetworks(known campaign.Known, names []string) campaign.Known {
	known.Networks = slices.Concat(known.Networks, names)
	return known
}

// checkClusters refuses what the campaign of a paper cannot leave open, or name: its cells are
// planned before any cluster is asked, and its readers have clusters of their own.
func checkClusters(tree *campaign.Tree, c campaign.Campaign) error {
	k := &checker{tree: tree}
	switch {
	case c.Testbed != campaign.Kubernetes:
		k.fail([]string{"testbed"}, "write testbed: kubernetes", "%s is for clusters, and this campaign is for the testbed %s", KubernetesFile, c.Testbed)
		return campaign.JoinErrors(k.errs)
	case len(c.Clusters) == 0:
		k.fail(nil, "for example clusters: [{name: flannel, context: flannel, network: flannel/vxlan}]", "missing key %q", "clusters")
	case c.Pairs != "":
		k.fail([]string{"pairs"}, "leave it out", "claims compare one pair of nodes of each cluster")
	}
	for i, cluster := range c.Clusters {
		if cluster.Network == "" {
			k.fail(at("clusters", i), "add the network that it must have, such as network: flannel/vxlan", "missing key %q", "network")
		}
		if cluster.Kubeconfig != "" {
			k.fail(at("clusters", i, "kubeconfig"), "name a context of the reader's kubeconfig", "a study cannot name a file of its reader's machine")
		}
		if cluster.Switch != nil {
			k.fail(at("clusters", i, "switch"), "give each network a cluster", "a study cannot switch the networks of its reader's clusters")
		}
	}
	return campaign.JoinErrors(k.errs)
}

// judges are the results that a paper's claims are judged on.
type judges struct {
	first *Results
	// agents are those of a Kubernetes; nil where there are none.
	agents *Results
}

// judges gives the claims about agents the first results of a Kubernetes, and all others the
// first of any testbed.
func (p Paper) judges(results []*Results) judges {
	j := judges{first: results[0]}
	at := slices.IndexFunc(results, (*Results).OnKubernetes)
	if at < 0 {
		return j
	}
	own := *results[at]
	own.Cut, own.Known = own.CutOfAgents, withNetworks(own.Known, p.ofClusters)
	j.agents = &own
	return j
}

// of are the results that a claim is judged on; nil where none can decide it.
func (j judges) of(c Claim) *Results {
	if c.needsAgents() {
		return j.agents
	}
	return j.first
}

// OnKubernetes reports whether the results were recorded on a Kubernetes.
func (r *Results) OnKubernetes() bool {
	return r.Environment != nil && r.Environment.Testbed == campaign.Kubernetes
}

// withoutAgents is the case of a claim that no results can decide.
func (p Paper) withoutAgents(c Claim) *resolver {
	r := &resolver{claim: c, uncounted: true}
	r.miss(c.Left, unsupportedHere+p.whereAgentsAre())
	return r
}

// Agents are the records that claims about the networks' own agents were judged on.
type Agents struct {
	// Claims are the IDs of those claims.
	Claims []string `json:"claims"`
	// Recorded says when, by which version of the program and on which kernel the records were
	// made.
	Recorded Recording `json:"recorded"`
	// Clusters says of each cluster which network and which Kubernetes it had.
	Clusters map[string]string `json:"clusters,omitempty"`
	// Blocks is the largest number of blocks of any cell. Cut tells that they are a part of
	// kubernetes.yaml, made for a time budget.
	Blocks int  `json:"blocks"`
	Cut    bool `json:"quick,omitempty"`
	// Untaken and Warnings are as in Reproduction. They are empty where all claims were judged
	// on these records.
	Untaken  map[string][]string `json:"untaken,omitempty"`
	Warnings []warning.Warning   `json:"warnings,omitempty"`
	// Dir is the result directory.
	Dir string `json:"dir,omitempty"`
}

// judgedAgents says what the claims about agents were judged on; nil where no claim was.
func (p Paper) judgedAgents(results []*Results) *Agents {
	at := slices.IndexFunc(results, (*Results).OnKubernetes)
	if at < 0 || !p.HasClaimsOfAgents() {
		return nil
	}
	r := results[at]
	out := &Agents{Recorded: recordingOf(r.Environment), Blocks: r.blocks(), Cut: r.CutOfAgents}
	for _, c := range p.Claims {
		if c.needsAgents() {
			out.Claims = append(out.Claims, c.ID)
		}
	}
	for name, facts := range r.Environment.Clusters {
		if out.Clusters == nil {
			out.Clusters = map[string]string{}
		}
		out.Clusters[name] = clusterWords(facts)
	}
	if at > 0 {
		out.Untaken, out.Warnings = r.Untaken, r.Analysis.Warnings
	}
	return out
}

// clusterWords are what a cluster had.
func clusterWords(c result.ClusterFacts) string {
	words := c.Network
	if c.NetworkVersion != "" {
		words += " " + c.NetworkVersion
	}
	return fmt.Sprintf("%s on Kubernetes %s, %s", words, c.Kubernetes, nodesWords(len(c.Nodes)))
}

func nodesWords(n int) string {
	if n == 1 {
		return "1 node"
	}
	return strconv.Itoa(n) + " nodes"
}

// recordingOf is when and where records were made.
func recordingOf(e *result.Environment) Recording {
	out := Recording{Version: e.Version, Kernel: e.Host.Kernel}
	if !e.Started.IsZero() {
		out.Started = e.Started.UTC().Format(time.DateOnly)
	}
	return out
}
