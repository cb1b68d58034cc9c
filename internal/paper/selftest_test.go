package paper

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
)

// TestEveryClaimCanGoBothWays: for each claim of each paper there are records that
// reproduce it and records that contradict it, judged as any records are.
func TestEveryClaimCanGoBothWays(t *testing.T) {
	labtest.Slow(t)
	known := program(t)
	for _, p := range all(t) {
		for i, c := range p.Claims {
			if c.NotYet != "" || len(p.uses[i]) == 0 {
				continue
			}
			m := invent(c, p.uses[i], known)
			r := resolve(m.results(), p.Publication.Cells, c)
			for k := range r.comparisons {
				r.comparisons[k].terms = m.terms(r.comparisons[k])
			}
			yes := m.shows(r, reproductions(r.comparisons, c.Holds), true, Reproduced)
			if v := judge(p.Publication.Cells, c, m.results(), left{}); !yes || v.Outcome != Reproduced {
				t.Errorf("%s: %s: made-up records that reproduce it: %s, %+v", p.ID, c.ID, v.Outcome, v.Missing)
			}
			no := m.shows(r, contradictions(r.comparisons, c.Holds), false, Contradicted)
			if v := judge(p.Publication.Cells, c, m.results(), left{}); !no || v.Outcome != Contradicted {
				t.Errorf("%s: %s: made-up records that contradict it: %s", p.ID, c.ID, v.Outcome)
			}
		}
	}
}

// TestReadmes: the page of each paper is made from its claims, and no sentence is
// without a claim or a reason.
func TestReadmes(t *testing.T) {
	for _, p := range all(t) {
		generated(t, filepath.Join("..", "..", "papers", p.ID, ReadmeFile), Readme(p))
	}
}

// TestRefused: a folder whose claims or cells decide nothing does not load.
func TestRefused(t *testing.T) {
	two := strings.Replace(goodCampaign, "[1472]", "[64, 1472]", 1)
	counts := "\n    counts_as: as published"
	for name, x := range map[string]struct {
		campaign, old, new, want string
	}{
		"several cells of the campaign": {two, "", "",
			`mine/claims.yaml:8:11: claims[0].left: several cells of campaign.yaml are meant by one selector; it does not name message_bytes (1472, 64); name one value, or write any`},
		"a table's place with several": {two, "{network: bridge}", "{network: bridge, message_bytes: any}",
			`several cells of campaign.yaml are meant in column c; it does not name message_bytes (1472, 64)`},
		"no cell of the campaign": {goodCampaign, "{network: bridge}", "{network: bridge, mtu: 9000}",
			`no cell of campaign.yaml is meant by mtu: 9000, network: bridge`},
		"a right cell that is not in it": {goodCampaign, "right: {network: host}", "right: {mtu: 9000}",
			`campaign.yaml has no cell bridge pod-to-pod inter-host, unshaped, default_settings, MTU 9000`},
		"cells that nothing uses": {strings.Replace(goodCampaign, "[host, bridge]", "[host, bridge, macvlan]", 1), "", "",
			`no claim, table or baseline uses a cell with network macvlan`},
		"a value that nothing uses": {goodCampaign + "mtu: [1500, 9000]\n", "{network: bridge}", "{network: bridge, mtu: 1500}",
			`uses a cell with mtu 9000`},
		"no bound": {goodCampaign, "greater", "ratio_within\n    range: [null, null]" + counts,
			`expected two numbers, at least one of them given`},
		"a bound that says nothing": {goodCampaign, "greater", "ratio_within\n    range: [0.1, 0.55]" + counts,
			`an end says nothing: from 0.1 to 0.55 is more than 4 times`},
		"words that are not named": {goodCampaign, "greater", "greater\n    by: 0.2",
			`missing key "counts_as"; name the published words`},
		"by above up_to": {goodCampaign, "greater", "greater\n    by: 0.2\n    up_to: 0.1" + counts,
			`by 0.2 is not below up_to 0.1`},
		"what cannot be more than 1": {goodCampaign, "metric: throughput_bits_per_second\n    left: {network: bridge}\n    relation: greater\n    right: {network: host}",
			"metric: loss_ratio\n    left: {network: bridge}\n    relation: value_within\n    range: [null, 1]" + counts,
			`no records contradict it: its thresholds include all that can be measured`},
		"what cannot be less than 0": {goodCampaign, "greater\n    right: {network: host}", "value_within\n    range: [0, null]" + counts,
			`no records contradict it`},
		"pairs that contradict each other": {strings.Replace(goodCampaign, "[host, bridge]", "[host, bridge, macvlan]", 1), "left: {network: bridge}\n    relation: greater\n    right: {network: host}",
			"left: {network: [bridge, macvlan]}\n    relation: greater\n    right: {network: [bridge, macvlan]}",
			`no records reproduce it: its pairs contradict each other`},
		"more than a link carries": {strings.Replace(goodCampaign, "workloads", "links: [1-gigabit]\nworkloads", 1), "greater\n    right: {network: host}", "link_share_within\n    range: [1.2, null]" + counts,
			`no records reproduce it`},
		"a difference with a share": {goodCampaign, "greater", "greater\n    measure: difference\n    by: 0.2" + counts,
			`takes no measure difference here`},
	} {
		t.Run(name, func(t *testing.T) {
			claims := goodClaims
			if x.old != "" {
				claims = strings.Replace(claims, x.old, x.new, 1)
			}
			papers := folder(goodPaper, claims)
			papers["mine/campaign.yaml"].Data = []byte(x.campaign)
			_, err := Load(papers, "mine", program(t))
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v\nwant: %s", err, x.want)
			}
		})
	}
	if _, err := Load(folder(goodPaper, goodClaims), "mine", program(t)); err != nil {
		t.Errorf("what is right is refused: %v", err)
	}
}

// TestJumboFramesFillALink: with an MTU of 9000 a link carries 99 % of its rate as
// payload, and the records made up for a claim that it is full stay below its rate.
func TestJumboFramesFillALink(t *testing.T) {
	papers := folder(goodPaper, strings.Replace(goodClaims, "greater\n    right: {network: host}", "fills_link", 1))
	papers["mine/campaign.yaml"].Data = []byte(goodCampaign + "links: [10-gigabit]\nmtu: [9000]\n")
	if _, err := Load(papers, "mine", program(t)); err != nil {
		t.Error(err)
	}
}
