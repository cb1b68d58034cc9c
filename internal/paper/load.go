package paper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// The files of a paper's folder.
const (
	PublicationFile = "paper.yaml"
	ClaimsFile      = "claims.yaml"
	CampaignFile    = "campaign.yaml"
	// KubernetesFile is a second campaign, on clusters. A folder need not have it.
	KubernetesFile = "kubernetes.yaml"
)

// List names the papers in a folder of papers: its folders with a paper.yaml.
func List(papers fs.FS) ([]string, error) {
	files, err := fs.Glob(papers, "*/"+PublicationFile)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		names = append(names, path.Dir(f))
	}
	return names, nil
}

// Load reads a paper. The error joins a *campaign.Error, with line and column, for each
// thing that is wrong in its files: a key, a selector that means several cells of the
// campaign or none, a claim that no records can reproduce or contradict, a value in the
// campaign that nothing uses.
func Load(papers fs.FS, id string, known Known) (Paper, error) {
	names, err := List(papers)
	if err != nil {
		return Paper{}, err
	}
	if !slices.Contains(names, id) {
		return Paper{}, fmt.Errorf("unknown paper %q; %s", id, campaign.Suggest("paper", id, names))
	}
	var p Paper
	var claims Claims
	published, err := read(papers, path.Join(id, PublicationFile), &p.Publication)
	if err == nil {
		err = campaign.JoinErrors(checkPublication(published, id, p.Publication))
	}
	claimed, claimsErr := read(papers, path.Join(id, ClaimsFile), &claims)
	if claimsErr == nil {
		claimsErr = campaign.JoinErrors(checkClaims(claimed, claims))
	}
	p.Claims, p.WithoutClaim = claims.Claims, claims.WithoutClaim
	var campaignErr error
	p.Campaign, campaignErr = fs.ReadFile(papers, path.Join(id, CampaignFile))
	if err := errors.Join(err, claimsErr, campaignErr); err != nil {
		return p, err
	}
	c, err := campaign.Parse(path.Join(id, CampaignFile), p.Campaign, known.Names)
	if err != nil {
		return p, err
	}
	clusters, err := p.onClusters(papers, known.Names)
	if err != nil {
		return p, err
	}
	return p, p.plan(newPlanned(CampaignFile, plan.Cells(c), known.Names), clusters, published, claimed, known)
}

// plan finds the cells of the campaigns that the paper uses, and checks claims and tables
// against them. Claims about agents use those on clusters.
func (p *Paper) plan(all, clusters planned, published, claimed *campaign.Tree, known Known) error {
	ofTables, ofClaims := &checker{tree: published}, &checker{tree: claimed}
	used, ofAgents := map[result.Cell]bool{}, map[result.Cell]bool{}
	for i, t := range p.Tables {
		for _, c := range all.ofTable(ofTables, i, p.Publication.Cells, t) {
			used[c] = true
		}
	}
	p.known = known
	p.uses = make([][]result.Cell, len(p.Claims))
	for i, claim := range p.Claims {
		from, into := all, used
		if claim.needsAgents() {
			from, into = clusters, ofAgents
		}
		switch {
		case claim.NotYet != "":
		case claim.needsAgents() && p.Kubernetes == nil:
			ofClaims.fail(at("claims", i, "testbed"), "add a campaign on clusters, or leave testbed out", "the folder has no %s, which measures claims with testbed %s", KubernetesFile, claim.Testbed)
		default:
			p.uses[i] = from.of(ofClaims, i, p.Publication.Cells, claim)
		}
		for _, c := range p.uses[i] {
			into[c] = true
		}
	}
	if len(ofClaims.errs) == 0 {
		ofClaims.selfTests(p.Publication.Cells, p.Claims, func(i int) []result.Cell { return p.uses[i] }, known)
	}
	p.Used, p.usedOfAgents = all.those(used), clusters.those(ofAgents)
	return errors.Join(campaign.JoinErrors(ofTables.errs), campaign.JoinErrors(ofClaims.errs), all.checkUsed(used), clusters.checkUsed(ofAgents))
}

// read fills in from a file that the schema of in's type holds for.
func read(papers fs.FS, name string, in any) (*campaign.Tree, error) {
	data, err := fs.ReadFile(papers, name)
	if err != nil {
		return nil, err
	}
	tree, err := campaign.ReadTree(name, data)
	if err != nil {
		return nil, err
	}
	schema, err := compile(reflect.TypeOf(in).Elem())
	if err != nil {
		return nil, err
	}
	value := tree.Value()
	if err := schema.Validate(value); err != nil {
		return nil, explain(tree, err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return tree, json.Unmarshal(text, in)
}

// explain gives each thing that the schema found wrong its place in the file.
func explain(tree *campaign.Tree, err error) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var errs []*campaign.Error
	for _, leaf := range leaves(invalid) {
		message, hint := say(leaf)
		where := leaf.InstanceLocation
		if extra, ok := leaf.ErrorKind.(*kind.AdditionalProperties); ok {
			where = append(slices.Clone(where), extra.Properties[0])
		}
		errs = append(errs, tree.ErrorAt(where, hint, message))
	}
	return campaign.JoinErrors(errs)
}

// leaves are the errors without a cause of their own. Alternatives are one error:
// what each of them lacks says less than that none fits.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if _, isChoice := e.ErrorKind.(*kind.OneOf); isChoice || len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, c := range e.Causes {
		out = append(out, leaves(c)...)
	}
	return out
}

// say is an error in the words of a campaign's.
func say(e *jsonschema.ValidationError) (message, hint string) {
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		return fmt.Sprintf("unknown key %q", k.Properties[0]), campaign.Suggest("key", k.Properties[0], keysNear(e.InstanceLocation))
	case *kind.Required:
		return "missing key " + quoted(k.Missing), "docs/adding-a-paper.md says what each is"
	case *kind.Enum:
		var names []string
		for _, w := range k.Want {
			names = append(names, fmt.Sprint(w))
		}
		return fmt.Sprintf("unknown value %q", fmt.Sprint(k.Got)), campaign.Suggest("value", fmt.Sprint(k.Got), names)
	case *kind.Type:
		return fmt.Sprintf("expected %s, found %s", strings.Join(slices.Sorted(slices.Values(k.Want)), " or "), k.Got), ""
	case *kind.ExclusiveMinimum:
		return "expected a number above 0", ""
	case *kind.OneOf:
		if len(e.InstanceLocation) > 0 && e.InstanceLocation[0] == "tables" {
			return "expected exactly one of ours, not_yet and no_data", "name the cells that regenerate it, or the reason why none does"
		}
		return "expected metric, left and relation, or not_yet", "write how it is measured, or the reason why it cannot be"
	case *kind.Pattern:
		return fmt.Sprintf("%q is no name", k.Got), "small letters, digits, dots, dashes and underscores"
	}
	return fmt.Sprintf("not as the schema says: %s", strings.Join(e.ErrorKind.KeywordPath(), "/")), "docs/adding-a-paper.md describes the keys"
}

func quoted(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf("%q", n))
	}
	return strings.Join(out, ", ")
}

// keysNear are the keys of the type that a place is in.
func keysNear(where []string) []string {
	t := reflect.TypeFor[Publication]()
	if len(where) > 0 && where[0] == "claims" {
		t = reflect.TypeFor[Claims]()
	}
	for _, step := range where {
		for f := range fields(t) {
			if f.name == step {
				t = f.field.Type
			}
		}
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	var names []string
	if t.Kind() == reflect.Struct {
		for f := range fields(t) {
			names = append(names, f.name)
		}
	}
	return names
}
