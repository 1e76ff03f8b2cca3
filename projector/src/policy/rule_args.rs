//! One line of the policy, as it is given.

use chrono::NaiveDate;
use clap::Args;
use market::event::Kind;
use market::history::{PolicyRule, SourcePolicy};

/// One line of the policy.
#[derive(Debug, Clone, Args)]
pub struct PolicyRuleArgs {
    /// Kind of rows: security, price, dividend, split, fundamentals, etf or holding
    pub kind: Kind,
    /// Source as given to ingest load --source
    pub source: String,
    /// First day it holds for; default: from the beginning
    #[arg(long)]
    pub from: Option<NaiveDate>,
    /// Last day it holds for; default: without end
    #[arg(long)]
    pub to: Option<NaiveDate>,
}

impl PolicyRuleArgs {
    /// The policy with this line at a rank, or without it; `None` when it had no such line to take away.
    pub(super) fn change_rule(&self, policy: &SourcePolicy, rank: Option<i32>) -> Option<SourcePolicy> {
        let is_other = |rule: &&PolicyRule| {
            (rule.kind, &rule.source, rule.from, rule.to) != (self.kind, &self.source, self.from, self.to)
        };
        let mut rules: Vec<PolicyRule> = policy.rules.iter().filter(is_other).cloned().collect();
        match rank {
            Some(rank) => {
                let source = self.source.clone();
                rules.push(PolicyRule { kind: self.kind, source, from: self.from, to: self.to, rank });
            }
            None if rules.len() == policy.rules.len() => return None,
            None => {}
        }
        Some(SourcePolicy { rules })
    }
}
