(* functions.v - ACT, CE, EXP, LOG: activations, softmax with cross-entropy, exponential and
   logarithm. *)

Require Import base.

(* ---- ACT --------------------------------------------------------------------------------- *)

Definition relu (x : R) : R := if Rlt_dec 0 x then x else 0.
Definition tanh (x : R) : R := (exp x - exp (- x)) / (exp x + exp (- x)).
Definition sigmoid (x : R) : R := 1 / (1 + exp (- x)).

Lemma exp_inv x : exp (- x) = 1 / exp x.
Proof. rewrite exp_Ropp. unfold Rdiv. ring. Qed.
Lemma exp_double x : exp (2 * x) = exp x ^ 2.
Proof. replace (2 * x) with (x + x) by ring. rewrite exp_plus. ring. Qed.

(* ACT.2: tanh(x) = (e^(2x) − 1)/(e^(2x) + 1) *)
Theorem ACT_2 x : tanh x = (exp (2 * x) - 1) / (exp (2 * x) + 1).
Proof.
  unfold tanh. rewrite exp_inv, exp_double. pose proof (exp_pos x). field. repeat split; nra.
Qed.

(* ACT.3: sigmoid(x) = e^x/(1 + e^x) *)
Theorem ACT_3 x : sigmoid x = exp x / (1 + exp x).
Proof. unfold sigmoid. rewrite exp_inv. pose proof (exp_pos x). field. lra. Qed.

(* ACT.4: relu′ = 1 if y > 0, else 0, where there is a derivative *)
Theorem ACT_4 x : x <> 0 -> is_derive relu x (if Rlt_dec 0 (relu x) then 1 else 0).
Proof.
  assert (near : forall y, y <> 0 -> locally x (fun s => Rabs (s - x) < Rabs y)).
  { intros y Y. exists (mkposreal _ (Rabs_pos_lt y Y)). intros s B. exact B. }
  assert (pos : forall s, 0 < s -> relu s = s)
    by (intros s P; unfold relu; destruct (Rlt_dec 0 s); lra).
  assert (neg : forall s, s <= 0 -> relu s = 0)
    by (intros s P; unfold relu; destruct (Rlt_dec 0 s); lra).
  intros H. destruct (Rlt_dec 0 x) as [P | P].
  - rewrite (pos x P). destruct (Rlt_dec 0 x); [| lra].
    apply (is_derive_ext_loc (fun s => s)); [| apply d_id].
    apply (filter_imp (fun s => Rabs (s - x) < Rabs x)); [| apply near, H].
    intros s B. rewrite (Rabs_right x) in B by lra. apply Rabs_def2 in B. rewrite pos; lra.
  - rewrite neg by lra. destruct (Rlt_dec 0 0); [lra |].
    apply (is_derive_ext_loc (fun _ => 0)); [| apply d_const].
    apply (filter_imp (fun s => Rabs (s - x) < Rabs x)); [| apply near, H].
    intros s B. rewrite (Rabs_left x) in B by lra. apply Rabs_def2 in B. rewrite neg; lra.
Qed.

(* ACT.5: tanh′ = 1 − y² *)
Theorem ACT_5 x : is_derive tanh x (1 - tanh x ^ 2).
Proof.
  pose proof (exp_pos x). pose proof (exp_pos (- x)).
  assert (De : is_derive (fun s => exp (- s)) x (exp (- x) * - 1))
    by apply d_exp, d_opp, d_id.
  assert (Dp : is_derive exp x (exp x)) by apply is_derive_exp.
  unfold tanh. eapply d_eq; [apply d_div; [rate | rate | lra] |]. cbv beta. field. lra.
Qed.

(* ACT.6: sigmoid′ = y·(1 − y) *)
Theorem ACT_6 x : is_derive sigmoid x (sigmoid x * (1 - sigmoid x)).
Proof.
  pose proof (exp_pos (- x)).
  assert (De : is_derive (fun s => exp (- s)) x (exp (- x) * - 1))
    by apply d_exp, d_opp, d_id.
  unfold sigmoid. eapply d_eq; [apply d_div; [rate | rate | lra] |]. cbv beta. field. lra.
Qed.

(* ---- CE ---------------------------------------------------------------------------------- *)

Section Softmax.
Variables (C t : nat) (z : nat -> R) (h : R).
Hypothesis right_class : (t < C)%nat.
(* CE.2: Z = ∑_c e^(z_c − h) = 1 + R *)
Notation Z h := (∑ c < C, exp (z c - h)).
Notation p h := (fun c => exp (z c - h) / Z h).

Lemma Sum_exp_pos y : 0 < ∑ c < C, exp (y c).
Proof.
  destruct C as [| k]; [lia |]. cbn [Sum].
  apply Rplus_le_lt_0_compat; [apply Sum_nonneg; intros; apply Rlt_le |]; apply exp_pos.
Qed.
Lemma Z_shift : Z h = exp (- h) * ∑ c < C, exp (z c).
Proof.
  rewrite <- Sum_scal. apply Sum_ext; intros c. unfold Rminus. rewrite exp_plus. ring.
Qed.

(* CE.3: p_c = e^(z_c − h)/Z: it does not depend on h, and its entries sum to 1. *)
Theorem CE_3 c : p h c = exp (z c) / ∑ c < C, exp (z c) /\ ∑ c < C, p h c = 1.
Proof.
  pose proof (Sum_exp_pos z). pose proof (exp_pos (- h)). split.
  - rewrite Z_shift. unfold Rminus. rewrite exp_plus. field. lra.
  - pose proof (Sum_exp_pos (fun c => z c - h)) as P. cbv beta in P.
    rewrite (Sum_lin1 C (1 / Z h) (fun c => exp (z c - h))) by (intros; field; lra). field. lra.
Qed.

(* CE.4: ℓ = −ln p_t = ln (1 + R) + (h − z_t) *)
Theorem CE_4 r : Z h = 1 + r -> - ln (p h t) = ln (1 + r) + (h - z t).
Proof.
  intros <-.
  pose proof (Sum_exp_pos (fun c => z c - h)) as P. cbv beta in P.
  unfold Rdiv. rewrite ln_mult, ln_exp, ln_Rinv by (auto using exp_pos, Rinv_0_lt_compat). ring.
Qed.
End Softmax.

(* CE.5: L = (1/N)·∑ₙ ℓₙ, with the class t n of example n *)
Definition cross_entropy (N C : nat) (t : nat -> nat) (z : nat -> nat -> R) : R :=
  1 / N * ∑ n < N, (ln (∑ c < C, exp (z n c)) - z n (t n)).
Definition softmax (C : nat) (z : nat -> R) (c : nat) : R := exp (z c) / ∑ k < C, exp (z k).

(* CE.6: dz_c = (1/N)·(p_c − δ_ct) *)
Theorem CE_6 N C t z : (forall n, (t n < C)%nat) ->
  gradient2 N C (cross_entropy N C t) z (fun n c => 1 / N * (softmax C (z n) c - δ c (t n))).
Proof.
  intros H p s d [E D]. unfold cross_entropy.
  assert (P : forall n, 0 < ∑ c < C, exp (z n c)).
  { intros n. apply (Sum_exp_pos C (t n)). apply H. }
  eapply d_eq.
  - apply d_scal, d_Sum. intros n. apply d_minus; [| apply D].
    apply d_ln; [apply d_Sum; intros c; apply d_exp, D |]. rewrite E. apply P.
  - cbv beta. rewrite E, <- Sum_scal. apply Sum_ext; intros n. specialize (P n).
    symmetry. transitivity (1 / N / (∑ c < C, exp (z n c)) * (∑ c < C, exp (z n c) * d n c)
                            + (- (1 / N)) * ∑ c < C, δ (t n) c * d n c).
    + apply Sum_lin2. intros c. unfold softmax, Rdiv. rewrite (δ_sym c (t n)). ring.
    + rewrite Sum_delta by apply H. unfold Rdiv. ring.
Qed.

(* CE.7: ∑_c dz_c = 0 *)
Theorem CE_7 N C t z : (t < C)%nat -> ∑ c < C, 1 / N * (softmax C z c - δ c t) = 0.
Proof.
  intros H. rewrite Sum_scal, Sum_minus.
  rewrite (Sum_ext C (fun c => δ c t) (δ t)), Sum_delta_one by (exact H || (intros; apply δ_sym)).
  destruct (CE_3 C t z 0 H t) as [_ E].
  rewrite (Sum_ext C (softmax C z) (fun c => exp (z c - 0) / ∑ k < C, exp (z k - 0))).
  - rewrite E. ring.
  - intros c. unfold softmax. rewrite Rminus_0_r. f_equal. apply Sum_ext; intros.
    rewrite Rminus_0_r. reflexivity.
Qed.

(* ---- EXP --------------------------------------------------------------------------------- *)

Section Exp.
Variables (x : R) (k : Z).
Notation t := (x - IZR k * ln 2).
(* EXP.1: k = ⌈x/ln2 − ½⌉ *)
Hypothesis ceiling : x / ln 2 - 1 / 2 <= IZR k < x / ln 2 - 1 / 2 + 1.

Lemma ln2_pos : 0 < ln 2.
Proof. rewrite <- ln_1. apply ln_increasing; lra. Qed.

(* EXP.2: t = x − k·ln2, |t| ≤ ½·ln2 *)
Theorem EXP_2 : Rabs t <= 1 / 2 * ln 2.
Proof.
  pose proof ln2_pos as P. assert (E : x = x / ln 2 * ln 2) by (field; lra).
  apply Rabs_le. split; rewrite E at 1; nra.
Qed.

Lemma exp_power : exp (IZR k * ln 2) = powerRZ 2 k.
Proof. rewrite powerRZ_Rpower by lra. reflexivity. Qed.

Lemma split : exp x = powerRZ 2 k * exp t.
Proof. rewrite <- exp_power, <- exp_plus. f_equal. ring. Qed.

(* The fraction s/c of EXP.3 stands for tanh(t/2). *)
Variables (s c : R).
Hypothesis positive : 0 < c.
Hypothesis fraction : s = c * tanh (t / 2).
Notation p := (powerRZ 2 k).

Lemma of_tanh : s = c * ((exp t - 1) / (exp t + 1)).
Proof. rewrite fraction, ACT_2. replace (2 * (t / 2)) with t by field. reflexivity. Qed.
Lemma power_pos : 0 < p.
Proof. apply powerRZ_lt. lra. Qed.

(* EXP.4: e^x = p·(1 + 2·s/(c − s)), p = 2^k *)
Theorem EXP_4 : exp x = p * (1 + 2 * s / (c - s)).
Proof.
  rewrite split, of_tanh. pose proof (exp_pos t). field. split; [lra |]. intros E.
  apply (Rlt_irrefl 0). rewrite <- E at 2. nra.
Qed.

(* EXP.5: tanh(x/2) = q/(q + 2·(c − s)), q = (p + 1)·s + (p − 1)·c *)
Theorem EXP_5 : let q := (p + 1) * s + (p - 1) * c in tanh (x / 2) = q / (q + 2 * (c - s)).
Proof.
  intros q. unfold q. rewrite ACT_2. replace (2 * (x / 2)) with x by field.
  rewrite split, of_tanh. pose proof (exp_pos t). pose proof power_pos.
  assert (0 < p * exp t) by (apply Rmult_lt_0_compat; assumption).
  assert (0 < c * (p * exp t)) by (apply Rmult_lt_0_compat; assumption).
  field. repeat split; nra.
Qed.

(* EXP.6: sigmoid(x) = p·(c + s)/((c − s) + p·(c + s)) *)
Theorem EXP_6 : sigmoid x = p * (c + s) / ((c - s) + p * (c + s)).
Proof.
  rewrite ACT_3, split, of_tanh. pose proof (exp_pos t). pose proof power_pos.
  assert (0 < p * exp t) by (apply Rmult_lt_0_compat; assumption).
  assert (0 < c * (p * exp t)) by (apply Rmult_lt_0_compat; assumption).
  field. repeat split; nra.
Qed.
End Exp.

(* EXP.3: s/c = z/(1 + z²/(3 + z²/(5 + z²/(7 + z²/(9 + z²/11))))), z = t/2, with the polynomials of
   the code. *)
Theorem EXP_3 t : let z := t / 2 in let u := t ^ 2 in
  let s := z + z * (u * (1 / 33 + u * (1 / 7920))) in
  let c := 1 + u * (5 / 44 + u * (1 / 792 + u * (1 / 665280))) in
  s / c = z / (1 + z ^ 2 / (3 + z ^ 2 / (5 + z ^ 2 / (7 + z ^ 2 / (9 + z ^ 2 / 11))))).
Proof.
  intros z u s c. unfold s, c, u. clear s c u. replace t with (2 * z) by (unfold z; field).
  replace ((2 * z) ^ 2) with (4 * z ^ 2) by ring. pose proof (pow2_ge_0 z) as W.
  generalize dependent (z ^ 2). intros w W. pose proof (Rmult_le_pos w w W W) as W2.
  pose proof (Rmult_le_pos (w * w) w W2 W) as W3. field. repeat split; nra.
Qed.

(* ---- LOG --------------------------------------------------------------------------------- *)

(* LOG.1: s = (m − 1)/(m + 1) is the number of which m is (1 + s)/(1 − s), between −1 and 1. *)
Theorem LOG_1 m : 0 < m -> let s := (m - 1) / (m + 1) in m = (1 + s) / (1 - s) /\ -1 < s < 1.
Proof.
  intros H s. unfold s. split; [field; lra |].
  split; [apply Rlt_div_r | apply Rlt_div_l]; lra.
Qed.

(* LOG.3: ln x = e·ln2 + ln m for x = 2^e·m *)
Theorem LOG_3 e m : 0 < m -> ln (powerRZ 2 e * m) = IZR e * ln 2 + ln m.
Proof.
  intros H. rewrite <- exp_power, ln_mult, ln_exp by (auto using exp_pos). reflexivity.
Qed.

(* LOG.2: ln m = 2·s·(1 + s²/3 + s⁴/5 + s⁶/7 + …): after n terms, what is left out is at most
   2·|s|²ⁿ⁺¹/(1 − s²). *)
Theorem LOG_2 s n : -1 < s < 1 ->
  Rabs (ln ((1 + s) / (1 - s)) - 2 * s * ∑ k < n, s ^ (2 * k) / (2 * k + 1))
  <= 2 * Rabs s ^ (2 * n + 1) / (1 - s ^ 2).
Proof.
  intros S. set (f := fun x => ln ((1 + x) / (1 - x)) - 2 * x * ∑ k < n, x ^ (2 * k) / (2 * k + 1)).
  assert (D : forall x, -1 < x < 1 -> is_derive f x (2 * x ^ (2 * n) / (1 - x ^ 2))).
  { intros x X. apply (is_derive_ext (fun x => ln ((1 + x) / (1 - x))
        - 2 * ∑ k < n, x ^ (2 * k + 1) / (2 * k + 1))).
    - intros y. change (ln ((1 + y) / (1 - y)) - 2 * ∑ k < n, y ^ (2 * k + 1) / (2 * k + 1) = f y).
      unfold f. rewrite Rmult_assoc, <- (Sum_scal n y). do 2 f_equal. apply Sum_ext; intros k.
      rewrite Nat.add_1_r, <- tech_pow_Rmult. unfold Rdiv; ring.
    - assert (P : 0 < (1 + x) / (1 - x)) by (apply Rdiv_lt_0_compat; lra).
      assert (Dq : is_derive (fun x => (1 + x) / (1 - x)) x (2 / (1 - x) ^ 2)).
      { eapply d_eq; [apply (d_div (fun x => 1 + x) (fun x => 1 - x)); [rate | rate | lra] |].
        cbv beta. field. lra. }
      eapply d_eq; [apply d_minus; [exact (d_ln _ _ _ Dq P) |] |].
      + apply d_scal, (d_Sum n (fun x k => x ^ (2 * k + 1) / (2 * k + 1))). intros k.
        apply d_divc, is_derive_pow, d_id.
      + cbv beta. rewrite (Sum_ext n _ (fun k => (x ^ 2) ^ k)).
        * assert (G : forall y, (1 - y) * ∑ k < n, y ^ k = 1 - y ^ n).
          { clear. intros y. induction n as [| n IH]; cbn [Sum pow]; [ring |].
            rewrite Rmult_plus_distr_l, IH. ring. }
          assert (x ^ 2 < 1) by nra. rewrite pow_mult.
          replace (∑ k < n, (x ^ 2) ^ k) with ((1 - (x ^ 2) ^ n) / (1 - x ^ 2))
            by (rewrite <- G; field; lra).
          field. repeat split; nra.
        * intros k. rewrite Nat.add_1_r, S_INR, mult_INR, Nat.pred_succ, pow_mult. simpl INR.
          pose proof (pos_INR k). field. lra. }
  assert (f0 : f 0 = 0)
    by (unfold f; replace ((1 + 0) / (1 - 0)) with 1 by field; rewrite ln_1; ring).
  destruct (MVT_gen f 0 s (fun x => 2 * x ^ (2 * n) / (1 - x ^ 2))) as (c & C & E).
  - intros x X. apply D. unfold Rmin, Rmax in X. destruct (Rle_dec 0 s); lra.
  - intros x X. apply derivable_continuous_pt. exists (2 * x ^ (2 * n) / (1 - x ^ 2)).
    apply is_derive_Reals, D. unfold Rmin, Rmax in X. destruct (Rle_dec 0 s); lra.
  - fold (f s). replace (f s) with (f s - f 0) by (rewrite f0; ring). rewrite E.
    assert (A : c ^ 2 <= s ^ 2) by (unfold Rmin, Rmax in C; destruct (Rle_dec 0 s); nra).
    assert (s ^ 2 < 1) by nra. rewrite Rminus_0_r, Rabs_mult, pow_mult.
    rewrite Rabs_right.
    + rewrite Nat.add_1_r, <- (tech_pow_Rmult (Rabs s)), (pow_mult (Rabs s)), pow2_abs.
      pose proof (pow_incr (c ^ 2) (s ^ 2) n (conj (pow2_ge_0 c) A)).
      pose proof (pow_le (c ^ 2) n (pow2_ge_0 c)).
      replace (2 * (Rabs s * (s ^ 2) ^ n) / (1 - s ^ 2))
        with (2 * (s ^ 2) ^ n / (1 - s ^ 2) * Rabs s) by (field; lra).
      apply Rmult_le_compat_r; [apply Rabs_pos |]. unfold Rdiv.
      apply Rmult_le_compat; [lra | apply Rlt_le, Rinv_0_lt_compat; lra | lra |].
      apply Rinv_le_contravar; lra.
    + apply Rle_ge. unfold Rdiv. apply Rmult_le_pos.
      * apply Rmult_le_pos; [lra | apply pow_le, pow2_ge_0].
      * apply Rlt_le, Rinv_0_lt_compat. lra.
Qed.
