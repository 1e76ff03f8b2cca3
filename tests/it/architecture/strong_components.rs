//! Strongly connected components of a graph, by Tarjan's algorithm.

use std::collections::BTreeMap;

/// Groups of two or more nodes that can all reach each other. Groups and their nodes are sorted.
pub(super) fn circles(edges: &BTreeMap<String, Vec<String>>) -> Vec<Vec<String>> {
    let mut search = Search { edges, seen: BTreeMap::new(), open: Vec::new(), found: Vec::new() };
    for node in edges.keys() {
        if !search.seen.contains_key(node.as_str()) {
            search.visit(node);
        }
    }
    search.found.sort();
    search.found
}

struct Search<'a> {
    edges: &'a BTreeMap<String, Vec<String>>,
    /// Visited nodes. Each node has a number, which is its position in the order of the visits. When the strongly
    /// connected component of a node is complete, the number is replaced by `None`.
    seen: BTreeMap<&'a str, Option<usize>>,
    open: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    /// Visits `node`, and then all unvisited nodes that can be reached from it. Returns Tarjan's low link of `node`:
    /// the lowest number of the nodes that this visit found. Nodes whose component was already complete are not
    /// considered.
    fn visit(&mut self, node: &'a str) -> usize {
        let order = self.seen.len();
        self.seen.insert(node, Some(order));
        let depth = self.open.len();
        self.open.push(node);
        let mut earliest = order;
        for next in self.edges.get(node).into_iter().flatten() {
            match self.seen.get(next.as_str()) {
                None => earliest = earliest.min(self.visit(next)),
                Some(Some(open)) => earliest = earliest.min(*open),
                Some(None) => {}
            }
        }
        if earliest == order {
            let mut component: Vec<String> = self.open.drain(depth..).map(str::to_owned).collect();
            component.sort();
            for member in &component {
                if let Some(place) = self.seen.get_mut(member.as_str()) {
                    *place = None;
                }
            }
            if component.len() > 1 {
                self.found.push(component);
            }
        }
        earliest
    }
}
