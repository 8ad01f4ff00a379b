(* merge.v - ST, SUM: statistics that merge, and the sums of the machine room. *)

Require Import base batch_norm.

(* n values x, and the values y behind them *)
Definition join (n : nat) (x y : nat -> R) (i : nat) : R :=
  if Nat.ltb i n then x i else y (i - n)%nat.
(* Q, the sum of the squared deviations from the mean *)
Definition dev2 (n : nat) (x : nat -> R) : R := ∑ i < n, (x i - mean n x) ^ 2.

Lemma Sum_join n m x y : Sum (n + m) (join n x y) = Sum n x + Sum m y.
Proof.
  rewrite Sum_split. f_equal; apply Sum_ext_lt; intros i I; unfold join.
  - replace (Nat.ltb i n) with true by (symmetry; apply Nat.ltb_lt; lia). reflexivity.
  - replace (Nat.ltb (n + i) n) with false by (symmetry; apply Nat.ltb_ge; lia).
    f_equal. lia.
Qed.
Lemma Sum_join_map n m x y f :
  ∑ i < n + m, f (join n x y i) = ∑ i < n, f (x i) + ∑ i < m, f (y i).
Proof.
  rewrite <- Sum_join. apply Sum_ext. intros i. unfold join. destruct (Nat.ltb i n); reflexivity.
Qed.
Lemma dev2_from n x a : (0 < n)%nat ->
  ∑ i < n, (x i - a) ^ 2 = dev2 n x + n * (mean n x - a) ^ 2.
Proof.
  intros H. pose proof (BN_2 n x H a) as E. apply (Rmult_eq_compat_l n) in E.
  pose proof (count_ne0 n H). unfold var in E. unfold dev2.
  transitivity (n * ((∑ i < n, (x i - a) ^ 2) / n)); [field; assumption |].
  rewrite E. field. assumption.
Qed.

Section Merge.
Variables (n_a n_b : nat) (a b : nat -> R).
Hypothesis a_pos : (0 < n_a)%nat.
Hypothesis b_pos : (0 < n_b)%nat.
Notation n := (n_a + n_b)%nat.
Notation both := (join n_a a b).
Notation μ_a := (mean n_a a).
Notation μ_b := (mean n_b b).
Notation μ := (mean n both).
Notation Q_a := (dev2 n_a a).
Notation Q_b := (dev2 n_b b).
Notation Q := (dev2 n both).
Notation δ_ba := (μ_b - μ_a).

(* ST.1: n = n_a + n_b. Every sum over both portions is the sum of the two sums. *)
Theorem ST_1 f : ∑ i < n, f (both i) = ∑ i < n_a, f (a i) + ∑ i < n_b, f (b i).
Proof. apply Sum_join_map. Qed.

Let na0 : 0 < n_a := count_pos n_a a_pos.
Let nb0 : 0 < n_b := count_pos n_b b_pos.

(* ST.2: μ = μ_a + δ·n_b/n, δ = μ_b − μ_a *)
Theorem ST_2 : μ = μ_a + δ_ba * n_b / n.
Proof.
  unfold mean at 1. rewrite Sum_join, (Sum_mean n_a), (Sum_mean n_b), plus_INR by assumption.
  field. lra.
Qed.

(* ST.3: Q = Q_a + Q_b + δ²·n_a·n_b/n *)
Theorem ST_3 : Q = Q_a + Q_b + δ_ba ^ 2 * n_a * n_b / n.
Proof.
  unfold dev2 at 1. rewrite (ST_1 (fun z => (z - μ) ^ 2)), !dev2_from by assumption.
  rewrite ST_2, plus_INR. field. lra.
Qed.

(* ST.4: v = Q/n *)
Theorem ST_4 : var n both = (Q_a + Q_b + δ_ba ^ 2 * n_a * n_b / n) / n.
Proof. rewrite <- ST_3. reflexivity. Qed.
End Merge.

(* A triple, and how two are merged. The order does not matter, nor which are merged first. *)
Record stats := { count : R; mid : R; q : R }.
Definition merged (s t : stats) : stats :=
  let n := count s + count t in
  {| count := n;
     mid := mid s + (mid t - mid s) * count t / n;
     q := q s + q t + (mid t - mid s) ^ 2 * count s * count t / n |}.
Definition stats_of (n : nat) (x : nat -> R) : stats :=
  {| count := n; mid := mean n x; q := dev2 n x |}.

Theorem ST_3_triple n m x y : (0 < n)%nat -> (0 < m)%nat ->
  merged (stats_of n x) (stats_of m y) = stats_of (n + m) (join n x y).
Proof.
  intros N H. unfold merged, stats_of; simpl.
  rewrite (ST_2 n m x y N H), (ST_3 n m x y N H), plus_INR. reflexivity.
Qed.
Theorem ST_3_commutes s t : 0 < count s -> 0 < count t -> merged s t = merged t s.
Proof. intros. unfold merged. f_equal; [ring | field; lra | field; lra]. Qed.
Theorem ST_3_associates s t u : 0 < count s -> 0 < count t -> 0 < count u ->
  merged (merged s t) u = merged s (merged t u).
Proof. intros. unfold merged; simpl. f_equal; [ring | field; lra | field; lra]. Qed.

(* ---- ST: the backward pass of several workers -------------------------------------------- *)

(* Value i belongs to worker `owner i`: any split, in portions of any size. *)
Definition at_worker (owner : nat -> nat) (w : nat) (f : nat -> R) (i : nat) : R :=
  δ (owner i) w * f i.

(* ST.5: A = ∑ᵢ dyᵢ, B = ∑ᵢ dyᵢ·x̂ᵢ over the values of all workers: the sums of the workers' sums *)
Theorem ST_5 n W owner f : (forall i, (owner i < W)%nat) ->
  ∑ w < W, ∑ i < n, at_worker owner w f i = ∑ i < n, f i.
Proof.
  intros H. rewrite Sum_swap. apply Sum_ext; intros i. unfold at_worker.
  rewrite (Sum_ext _ _ (fun w => f i * δ (owner i) w)) by termwise.
  rewrite Sum_scal, Sum_delta_one by apply H. ring.
Qed.

(* ST.6: dxᵢ = γ·r·(dyᵢ − A/n − x̂ᵢ·B/n), the gradient of one loss of all workers' outputs *)
Theorem ST_6 n W owner ε γ β x L dy : let r := rstd n ε x in let xh := normalized n ε x in
  (0 < n)%nat -> 0 < var n x + ε -> (forall i, (owner i < W)%nat) ->
  let A := ∑ w < W, ∑ i < n, at_worker owner w dy i in
  let B := ∑ w < W, ∑ i < n, at_worker owner w (dy · xh) i in
  gradient n L (bn n ε γ β x) dy ->
  gradient n (fun x => L (bn n ε γ β x)) x (fun i => γ * r * (dy i - A / n - xh i * (B / n))).
Proof.
  intros r xh N R H A B dL. unfold A, B. rewrite !ST_5 by exact H.
  exact (BN_19 n ε γ β x N R L dy dL).
Qed.

(* ST.7: m = μ, u = Q/(n − 1), or Q/n if `biased`: the variance of BN.9, of all values of all
   portions *)
Theorem ST_7 n x : (1 < n)%nat -> dev2 n x / (n - 1) = var n x * n / (n - 1).
Proof.
  intros H. assert (1 < INR n) by (apply (lt_INR 1); exact H). unfold dev2, var. field. lra.
Qed.

(* ---- SUM --------------------------------------------------------------------------------- *)

Section Pivot.
Variables (n : nat) (x : nat -> R) (p : R).
Hypothesis n_pos : (0 < n)%nat.
Notation "⟨ f ⟩" := (mean n f).
Notation μ := (mean n x).
Notation d := (fun i => x i - p).
Let n_ne0 := count_ne0 n n_pos.

(* SUM.1: ⟨(x − μ)²⟩ = ⟨x²⟩ − μ² *)
Theorem SUM_1 : ⟨fun i => (x i - μ) ^ 2⟩ = ⟨fun i => x i ^ 2⟩ - μ ^ 2.
Proof.
  pose proof (BN_2 n x n_pos 0) as E. unfold var in E.
  rewrite (mean_is n (fun i => (x i - μ) ^ 2)), (mean_is n (fun i => x i ^ 2)).
  rewrite (Sum_ext n (fun i => x i ^ 2) (fun i => (x i - 0) ^ 2)) by termwise. lra.
Qed.

(* SUM.2: d = x − p: μ = p + ⟨d⟩, v = ⟨d²⟩ − ⟨d⟩² *)
Theorem SUM_2 : μ = p + ⟨d⟩ /\ var n x = ⟨fun i => d i ^ 2⟩ - ⟨d⟩ ^ 2.
Proof.
  assert (E : ⟨d⟩ = μ - p).
  { rewrite (mean_lin2 n 1 (- p) x (fun _ => 1)), mean_const by (exact n_pos || termwise). ring. }
  rewrite E. split; [ring |]. pose proof (BN_2 n x n_pos p). unfold mean at 1. lra.
Qed.

(* SUM.7: μ = x₁ + (1/M)·∑ᵢ (xᵢ − x₁), v = (1/M)·∑ᵢ (xᵢ − μ)² *)
Theorem SUM_7 : μ = x 0%nat + 1 / n * (∑ i < n, (x i - x 0%nat)) /\
  var n x = 1 / n * ∑ i < n, (x i - μ) ^ 2.
Proof.
  rewrite Sum_minus, Sum_const, Sum_mean by exact n_pos. unfold var. split; field; exact n_ne0.
Qed.
End Pivot.

(* A block of B values b, measured from the pivot p, after n values a. *)
Section Block.
Variables (n B : nat) (a b : nat -> R) (p : R).
Hypothesis n_pos : (0 < n)%nat.
Hypothesis B_pos : (0 < B)%nat.
Notation m := (mean n a).
Notation all := (join n a b).

Notation S1 := (∑ i < B, (b i - p)).
Notation S2 := (∑ i < B, (b i - p) ^ 2).
Notation δ_m := (p + S1 / B - m).

Let n0 : 0 < n := count_pos n n_pos.
Let B0 : 0 < B := count_pos B B_pos.

(* SUM.3: S₁ = ∑ᵢ (xᵢ − p), S₂ = ∑ᵢ (xᵢ − p)²: they make the block's own mean and its own sum of
   squared deviations. *)
Theorem SUM_3 : p + S1 / B = mean B b /\ S2 - S1 ^ 2 / B = dev2 B b.
Proof.
  rewrite dev2_from by exact B_pos. rewrite Sum_minus, Sum_const, (Sum_mean B b) by exact B_pos.
  split; field; lra.
Qed.

(* SUM.4: δ = p + S₁/B − m, m ← m + δ·B/(n + B) *)
Theorem SUM_4 : mean (n + B) all = m + δ_m * B / (n + B).
Proof.
  destruct SUM_3 as [E _]. rewrite E, (ST_2 n B a b n_pos B_pos), plus_INR. reflexivity.
Qed.

(* SUM.5: Q ← Q + (S₂ − S₁²/B) + δ²·n·B/(n + B) *)
Theorem SUM_5 : dev2 (n + B) all = dev2 n a + (S2 - S1 ^ 2 / B) + δ_m ^ 2 * n * B / (n + B).
Proof.
  destruct SUM_3 as [E F]. rewrite E, F, (ST_3 n B a b n_pos B_pos), plus_INR. reflexivity.
Qed.

(* SUM.6: S₂ − S₁²/B + δ²·n·B/(n + B) ≥ ½·∑ᵢ (xᵢ − m)² ≥ S₂/8: if no block is longer than what
   is before it; and if p is the float nearest to m, which makes |xᵢ − p| ≤ 2·|xᵢ − m|. *)
Theorem SUM_6 : B <= n -> (forall i, Rabs (b i - p) <= 2 * Rabs (b i - m)) ->
  S2 - S1 ^ 2 / B + δ_m ^ 2 * n * B / (n + B) >= 1 / 2 * ∑ i < B, (b i - m) ^ 2 /\
  1 / 2 * ∑ i < B, (b i - m) ^ 2 >= S2 / 8.
Proof.
  intros H near. split; apply Rle_ge.
  - destruct SUM_3 as [E F]. rewrite E, F, (dev2_from B b m) by exact B_pos.
    assert (0 <= dev2 B b) by (apply Sum_nonneg; intros; apply pow2_ge_0).
    assert (K : 1 / 2 <= n / (n + B)) by (apply -> Rle_div_r; lra).
    pose proof (Rmult_le_pos _ _ (pow2_ge_0 (mean B b - m)) (Rlt_le _ _ B0)) as P.
    pose proof (Rmult_le_compat_l _ _ _ P K).
    replace ((mean B b - m) ^ 2 * n * B / (n + B)) with ((mean B b - m) ^ 2 * B * (n / (n + B)))
      by (field; lra).
    lra.
  - replace (S2 / 8) with (1 / 2 * ∑ i < B, 1 / 4 * (b i - p) ^ 2)
      by (rewrite Sum_scal; field).
    apply Rmult_le_compat_l; [lra |]. apply Sum_le; intros i _.
    rewrite <- (pow2_abs (b i - p)), <- (pow2_abs (b i - m)). specialize (near i).
    pose proof (Rabs_pos (b i - p)). nra.
Qed.
End Block.

(* SUM.8: lⱼ = aⱼ + aⱼ₊L + aⱼ₊₂L + …, added from left to right: all lanes together have all terms *)
Theorem SUM_8 L K a : ∑ j < L, ∑ k < K, a (k * L + j)%nat = ∑ i < K * L, a i.
Proof.
  rewrite Sum_swap. induction K; [reflexivity |]. cbn [Sum]. rewrite IHK, Nat.mul_succ_l.
  symmetry. apply Sum_split.
Qed.

(* SUM.9: lⱼ ← lⱼ + lⱼ₊ₖ for j < k, k = L/2, L/4, …, 1: lane 0 becomes the sum of L = 2ᵗ lanes *)
Fixpoint folded (t : nat) (l : nat -> R) : R :=
  match t with
  | O => l 0%nat
  | S s => folded s (fun j => l j + l (j + 2 ^ s)%nat)
  end.
Theorem SUM_9 t l : folded t l = ∑ j < 2 ^ t, l j.
Proof.
  revert l. induction t; intros l; [simpl; ring |]. cbn [folded]. rewrite IHt, Sum_plus.
  replace (2 ^ S t)%nat with (2 ^ t + 2 ^ t)%nat by (simpl; lia). rewrite Sum_split.
  f_equal. apply Sum_ext; intros j. f_equal; lia.
Qed.

Section Split_mean.
Variables (n : nat) (ε γ β h t a : R) (x u : nat -> R).
Notation "⟨ f ⟩" := (mean n f).
Notation r := (rstd n ε x).
Notation "x̂" := (normalized n ε x).
(* SUM.10: μ = h + t *)
Hypothesis split : mean n x = h + t.

(* SUM.12: ∑ᵢ uᵢ·x̂ᵢ = r·(∑ᵢ uᵢ·(xᵢ − h) − t·∑ᵢ uᵢ) *)
Theorem SUM_12 : ∑ i < n, u i * x̂ i = r * (∑ i < n, u i * (x i - h) - t * ∑ i < n, u i).
Proof.
  transitivity (r * (∑ i < n, u i * (x i - h)) + (- r * t) * ∑ i < n, u i); [| ring].
  apply Sum_lin2. intros i. unfold normalized. rewrite split. ring.
Qed.

(* SUM.11: x̂ = r·(x − h) − r·t, γ·x̂ + β = s·(x − h) + b, s = γ·r, b = β − s·t *)
Theorem SUM_11 i : let s := γ * r in let b := β - s * t in
  x̂ i = r * (x i - h) - r * t /\ γ * x̂ i + β = s * (x i - h) + b.
Proof. unfold normalized. rewrite split. split; ring. Qed.

(* SUM.13: a·(u − ⟨u⟩ − x̂·⟨u·x̂⟩) = a·((u − ⟨u⟩) + (s·(x − h) + b)), s = −r·⟨u·x̂⟩, b = −s·t *)
Theorem SUM_13 i : let s := - r * ⟨u · x̂⟩ in let b := - s * t in
  a * (u i - ⟨u⟩ - x̂ i * ⟨u · x̂⟩) = a * ((u i - ⟨u⟩) + (s * (x i - h) + b)).
Proof.
  intros s b. unfold b, s. set (c := ⟨u · x̂⟩). unfold normalized. rewrite split. ring.
Qed.
End Split_mean.
