#![allow(clippy::unwrap_used, reason = "a failed parse is the failure")]

use super::*;

fn d(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

fn terms(scheme: Scheme, transform: Option<Transform>) -> Terms {
    Terms {
        scheme,
        transform,
        product: "Tokens".into(),
        unit_label: String::new(),
        currency: "usd".into(),
        interval: "month".into(),
        show: LineQuantity::Usage,
    }
}

fn tiers() -> Vec<Tier> {
    let tier = |up_to: Option<&str>, unit: &str, flat: Option<&str>| Tier {
        up_to: up_to.map(d),
        unit: Some(d(unit)),
        flat: flat.map(d),
    };
    vec![tier(Some("1000"), "0.5", None), tier(Some("10000"), "0.25", Some("100")), tier(None, "0.125", None)]
}

fn amounts(terms: &Terms, usage: &str) -> (Vec<i64>, i64) {
    let amounts: Vec<i64> =
        price_lines(terms, &d(usage)).iter().map(|line| i64::try_from(&line.amount).unwrap()).collect();
    let total = amounts.iter().sum();
    (amounts, total)
}

#[test]
fn each_vector_of_the_price_table_comes_out_to_the_cent() {
    let unit = |amount: &str| terms(Scheme::PerUnit(d(amount)), None);
    let package = |up: bool| terms(Scheme::PerUnit(d("1000")), Some(Transform { divide_by: 60, up }));
    let graduated = terms(Scheme::Graduated(tiers()), None);
    let volume = terms(Scheme::Volume(tiers()), None);
    let table: Vec<(&str, Terms, &str, Vec<i64>, i64)> = vec![
        ("per unit 0.0003", unit("0.0003"), "123456", vec![37], 37),
        ("per unit 0.05", unit("0.05"), "30", vec![2], 2),
        ("per unit 1e-12", unit("0.000000000001"), "1000000000000", vec![1], 1),
        ("per unit 0.5", unit("0.5"), "1", vec![1], 1),
        ("per unit 0.3", unit("0.3"), "1", vec![0], 0),
        ("package of 60, up", package(true), "150", vec![3000], 3000),
        ("package of 60, down", package(false), "150", vec![2000], 2000),
        ("package of 60, up, idle", package(true), "0", vec![0], 0),
        ("package of 60, up, full", package(true), "60", vec![1000], 1000),
        ("graduated", graduated.clone(), "0", vec![0], 0),
        ("graduated", graduated.clone(), "1", vec![1], 1),
        ("graduated", graduated.clone(), "1000", vec![500], 500),
        ("graduated", graduated.clone(), "1001", vec![500, 0, 100], 600),
        ("graduated", graduated.clone(), "10001", vec![500, 2250, 100, 0], 2850),
        ("graduated", graduated.clone(), "25000", vec![500, 2250, 100, 1875], 4725),
        ("volume", volume.clone(), "1000", vec![500], 500),
        ("volume", volume.clone(), "1001", vec![250, 100], 350),
        ("volume", volume.clone(), "10001", vec![1250], 1250),
        ("volume", volume.clone(), "25000", vec![3125], 3125),
        ("below zero", unit("5"), "-3", vec![0], 0),
    ];
    for (name, terms, usage, lines, total) in table {
        assert_eq!(amounts(&terms, usage), (lines, total), "{name} at {usage}");
    }
}

#[test]
fn tiers_split_an_item_and_keep_its_quantity() {
    let lines = price_lines(&terms(Scheme::Graduated(tiers()), None), &d("25000"));
    let quantity = lines.iter().fold(Decimal::zero(), |sum, line| sum.add(&line.quantity));
    assert_eq!(quantity, d("25000"));
}

#[test]
fn a_second_tier_of_a_public_invoice_rounds_up() {
    let credits = vec![
        Tier { up_to: Some(d("1000")), unit: Some(d("0")), flat: Some(d("900")) },
        Tier { up_to: None, unit: Some(d("3.6")), flat: Some(d("0")) },
    ];
    assert_eq!(amounts(&terms(Scheme::Graduated(credits), None), "1031"), (vec![0, 900, 112, 0], 1012));
}

#[test]
fn a_line_says_its_price_as_a_person_reads_it() {
    let lines = price_lines(&terms(Scheme::PerUnit(d("0.0003")), None), &d("123456"));
    assert_eq!(lines[0].description, "123456 × Tokens (at $0.000003 / month)");
    let lines = price_lines(&terms(Scheme::PerUnit(d("250")), None), &d("1"));
    assert_eq!(lines[0].description, "1 × Tokens (at $2.50 / month)");
}
