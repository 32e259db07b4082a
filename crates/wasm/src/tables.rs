//! What a page reads of a scenario and of a run.
use ackademy::live::Live;
use ackademy::sim::plan::{LinkPlan, LossSpec, RatePlan};
use ackademy::sim::record::{Column, Table};
use ackademy::{controllers, coupled};
use serde_json::{Map, Value, json};

/// The hash of the core; name, line of help and whether it governs several subflows of each controller.
pub fn controllers() -> Value {
    let plain = controllers::ALL.iter().map(|one| (one.name, one.about, false));
    let coupled = coupled::ALL.iter().map(|one| (one.name, one.about, true));
    let all = plain.chain(coupled).map(|(name, about, is_coupled)| {
        json!({ "name": name, "about": about, "is_coupled": is_coupled })
    });
    json!({ "code": ackademy::CODE_HASH, "controllers": all.collect::<Value>() })
}

/// What a page draws: flows, links and their routes.
pub fn about(live: &mut Live) -> Value {
    let network = live.scenario().network.clone();
    let name = live.scenario().name();
    let flows: Vec<Value> = live
        .sim()
        .flow_names()
        .map(|(name, controller, start_s)| {
            json!({ "name": name, "controller": controller, "start_s": start_s })
        })
        .collect();
    let links: Vec<Value> = network.links.iter().map(link).collect();
    let routes = network.connections.iter().flat_map(|plan| &plan.subflows);
    let routes: Vec<Value> =
        routes.map(|route| json!({ "forward": route.forward, "reverse": route.reverse })).collect();
    json!({
        "name": name,
        "duration_s": network.duration.as_secs_f64(),
        "is_dumbbell": live.scenario().spec.dumbbell.is_some(),
        "sample_s": live.sample_interval().as_secs_f64(),
        "flows": flows,
        "links": links,
        "routes": routes,
    })
}

fn link(plan: &LinkPlan) -> Value {
    let limit = plan.queue.limit_bytes(PACKET_BYTES) / PACKET_BYTES;
    let rate = match &plan.rate {
        RatePlan::Constant(rate) => Some(rate.as_mbps()),
        _ => None,
    };
    let loss = match plan.loss {
        None => Some(0.0),
        Some(LossSpec::Bernoulli { ratio, .. }) => Some(ratio),
        Some(LossSpec::GilbertElliott { .. }) => None,
    };
    json!({
        "name": plan.name,
        "limit_packets": limit.is_finite().then_some(limit),
        "rate_mbps": rate,
        "loss": loss,
        "delay_ms": plan.delay.minimum().as_millis_f64(),
    })
}

/// In which a page counts the limit of a queue.
const PACKET_BYTES: f64 = 1500.0;

/// Tables without series, each as a list of rows.
pub fn json(tables: &[Table]) -> Value {
    let shown = tables.iter().filter(|table| !table.name.ends_with("series"));
    shown.map(|table| (table.name.to_owned(), rows(table))).collect::<Map<_, _>>().into()
}

fn rows(table: &Table) -> Value {
    let height = table.columns.first().map_or(0, |(_, column)| height(column));
    (0..height)
        .map(|row| {
            let cells =
                table.columns.iter().map(|(name, own)| ((*name).to_owned(), cell(own, row)));
            Value::from(cells.collect::<Map<_, _>>())
        })
        .collect()
}

fn height(column: &Column) -> usize {
    match column {
        Column::Texts { rows, .. } => rows.len(),
        Column::Numbers(values) => values.len(),
        Column::Counts(values) => values.len(),
    }
}

fn cell(column: &Column, row: usize) -> Value {
    match column {
        Column::Texts { words, rows } => json!(words[rows[row] as usize]),
        Column::Numbers(values) => json!(values[row]),
        Column::Counts(values) => json!(values[row]),
    }
}

/// Names of tables and columns with a zero behind each, then the values: texts with a zero behind each, numbers and
/// counts in eight bytes, the lowest first.
pub fn bytes(tables: &[Table]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |text: &str| out.extend_from_slice(&[text.as_bytes(), &[0]].concat());
    let mut values: Vec<&Column> = Vec::new();
    for table in tables {
        put(table.name);
        for (name, column) in &table.columns {
            put(name);
            values.push(column);
        }
    }
    for column in values {
        match column {
            Column::Texts { words, rows } => {
                for &row in rows {
                    out.extend_from_slice(words[row as usize].as_bytes());
                    out.push(0);
                }
            }
            Column::Numbers(values) => {
                out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
            Column::Counts(values) => {
                out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
        }
    }
    out
}
